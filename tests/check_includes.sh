#!/bin/sh
# Checks who may include what (and, in codegen/, who may touch the outside world):
#
#   codegen/      codegen/, fmt and the standard library; no thread, file, clock or environment
#   codegen/X/    the rooms before X: shape, uop, then simplify and ast, then schedule (on ast),
#                 lower (on all of these), render; besides error.h and api.h, and from schedule on
#                 target.h
#   devices/      codegen/ and devices/
#   devices/X/    codegen/, devices/*.h and devices/X/, but no other backend's folder
#   runtime/      codegen/, devices/ and runtime/
#   LLVM and TBB only in devices/cpu/, CUDA only in devices/cuda/, OpenCL only in devices/opencl/
#
# Headers of the project are included as "quern/<path from the top>".
#
# Usage: check_includes.sh TOP        prints file:line of every violation; fails if there is one
#        check_includes.sh --self-test
set -eu

# shellcheck disable=SC2016  # the dollars are awk's
rules='
function complain(what) {
  printf "%s:%d: %s\n", FILENAME, FNR, what
  bad = 1
}

# The only folder that may include this vendor header, or nothing.
function home_of(header) {
  if (header ~ /^(llvm|llvm-c|tbb|oneapi)\//) return "devices/cpu"
  if (header ~ /^(cuda|nvrtc|nvPTXCompiler|nvJitLink|cublas|nvml|nvtx3\/)/) return "devices/cuda"
  if (header ~ /^(CL|OpenCL)\//) return "devices/opencl"
  return ""
}

function check(header, quoted,   parts, top, home) {
  home = home_of(header)
  if (header ~ /(^|\/)\.\.(\/|$)/)
    complain(header ": write the path from the project top")
  else if (sub(/^quern\//, "", header)) {
    split(header, parts, "/")
    if (parts[1] in rank) check_layer(header, parts)
    else complain("quern/" header ": expected quern/ and codegen/, devices/ or runtime/")
  } else if (quoted)
    complain(header ": a quoted include starts with quern/")
  else if (home != "" && home != folder)
    complain(header ": only for " home "/")
  else if (layer == "codegen") {
    if (header in impure) complain(header ": codegen/ is pure functions")
    else if (header !~ /^[a-z_0-9]+$/ && header !~ /^fmt\//)
      complain(header ": codegen/ may use only the standard library and fmt")
  }
}

function check_layer(header, parts) {
  if (rank[parts[1]] > rank[layer])
    complain(header ": " layer "/ may not include " parts[1] "/")
  else if (folder ~ /^devices\// && parts[1] == "devices" && 3 in parts &&
           folder != "devices/" parts[2])
    complain(header ": a backend may not include another one")
  else if (layer == "codegen" && depth > 2)
    check_room(header, parts)
}

# A header of codegen/ for a file in one of its rooms.
function check_room(header, parts) {
  if (3 in parts) {
    if (!(parts[2] in before)) complain(header ": codegen/ has no room " parts[2] "/")
    else if (parts[2] != path[2] && index(before[path[2]] " ", " " parts[2] " ") == 0)
      complain(header ": " path[2] "/ may not include " parts[2] "/")
  } else if (parts[2] != "error.h" && parts[2] != "api.h" &&
             !(parts[2] == "target.h" && path[2] in knows_target))
    complain(header ": " path[2] "/ may not include it")
}

# The line without what is inside raw strings, which may hold the text of another program.
function strip_raw_strings(line,   kept, end) {
  kept = ""
  while (1) {
    if (raw_end != "") {
      end = index(line, raw_end)
      if (!end) return kept
      line = substr(line, end + length(raw_end))
      raw_end = ""
    }
    if (!match(line, /R"[^()" ]*\(/)) return kept line
    kept = kept substr(line, 1, RSTART - 1) "\"\""
    raw_end = ")" substr(line, RSTART + 2, RLENGTH - 3) "\""
    line = substr(line, RSTART + RLENGTH)
  }
}

BEGIN {
  rank["codegen"] = 0
  rank["devices"] = 1
  rank["runtime"] = 2
  before["shape"] = ""
  before["uop"] = " shape"
  before["simplify"] = before["ast"] = " shape uop"
  before["schedule"] = " shape uop ast"
  before["lower"] = " shape uop simplify ast schedule"
  before["render"] = before["lower"] " lower"
  knows_target["schedule"] = knows_target["lower"] = knows_target["render"] = 1
  split("atomic barrier chrono condition_variable ctime filesystem fstream future iostream latch " \
        "mutex semaphore shared_mutex stop_token thread", names, " ")
  for (i in names) impure[names[i]]
  outside = "getenv|fopen|random_device|srand|this_thread|thread_local"
}

FNR == 1 {
  depth = split(FILENAME, path, "/")
  layer = path[1]
  folder = depth > 2 ? path[1] "/" path[2] : path[1]
  raw_end = ""
}

{
  line = strip_raw_strings($0)
  if (line ~ /^[ \t]*#[ \t]*include[ \t]*[<"]/) {
    quoted = line !~ /include[ \t]*</
    sub(/^[^<"]*[<"]/, "", line)
    sub(/[>"].*$/, "", line)
    check(line, quoted)
  } else if (layer == "codegen") {
    gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
    sub(/\/\/.*$/, "", line)
    if (match(line, "(^|[^A-Za-z0-9_])(" outside ")([^A-Za-z0-9_]|$)"))
      complain(substr(line, RSTART, RLENGTH) ": codegen/ is pure functions")
  }
}

END { exit bad }
'

check() (
  cd "$1"
  find codegen devices runtime -name '*.h' -o -name '*.cpp' -o -name '*.inc' | sort |
    xargs awk "$rules" /dev/null
)

# Writes line $3 to file $2 and expects the check to answer "pass" or "fail" ($1).
expect() {
  rm -rf "$tree"
  mkdir -p "$tree/codegen" "$tree/devices" "$tree/runtime" "$tree/$(dirname "$2")"
  printf '// A comment.\n%s\n' "$3" >"$tree/$2"
  if report=$(check "$tree"); then got=pass; else got=fail; fi
  if [ "$got" = fail ] && [ "${report#"$2:2: "}" = "$report" ]; then got="report '$report'"; fi
  if [ "$got" != "$1" ]; then
    printf '%s in %s: expected %s, got %s\n' "$3" "$2" "$1" "$got"
    failed=1
  fi
}

self_test() {
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' EXIT
  failed=0
  expect pass codegen/a.cpp '#include "quern/codegen/b.h"'
  expect pass codegen/a.cpp '#include <vector>'
  expect pass codegen/a.cpp '#include <fmt/format.h>'
  expect pass codegen/a.cpp 'auto text = R"(#include <cuda_fp16.h>)"; // getenv'
  expect pass codegen/a.cpp 'auto text = "getenv";'
  expect pass devices/a.cpp '#include "quern/devices/cpu/cpu.h"'
  expect pass devices/cpu/a.cpp '#include <llvm/IR/Module.h>'
  expect pass devices/cpu/a.cpp '#include "quern/devices/cpu/pool.h"'
  expect pass devices/cpu/a.cpp '#include "quern/devices/device.h"'
  expect pass runtime/a.cpp '#include "quern/devices/device.h"'
  expect pass runtime/command/a.cpp '#include <mutex>'
  expect pass codegen/uop/a.cpp '#include "quern/codegen/shape/sint.h"'
  expect pass codegen/uop/a.cpp '#include "quern/codegen/uop/b.h"'
  expect pass codegen/shape/a.cpp '#include "quern/codegen/error.h"'
  expect pass codegen/schedule/a.cpp '#include "quern/codegen/target.h"'
  expect pass codegen/lower/a.cpp '#include "quern/codegen/simplify/simplify.h"'
  expect pass codegen/render/llvm/a.cpp '#include "quern/codegen/render/b.h"'
  expect pass codegen/generate.cpp '#include "quern/codegen/render/render.h"'
  expect fail codegen/a.cpp '#include "codegen/error.h"'
  expect fail codegen/a.cpp '#include "quern/tests/help.h"'
  expect fail codegen/shape/a.cpp '#include "quern/codegen/uop/uop.h"'
  expect fail codegen/uop/a.cpp '#include "quern/codegen/target.h"'
  expect fail codegen/simplify/a.cpp '#include "quern/codegen/ast/ast.h"'
  expect fail codegen/ast/a.cpp '#include "quern/codegen/simplify/simplify.h"'
  expect fail codegen/ast/a.cpp '#include "quern/codegen/program.h"'
  expect fail codegen/schedule/a.cpp '#include "quern/codegen/lower/lower.h"'
  expect fail codegen/lower/a.cpp '#include "quern/codegen/render/render.h"'
  expect fail codegen/lower/a.cpp '#include "quern/codegen/generate.h"'
  expect fail codegen/lower/a.cpp '#include "quern/codegen/elsewhere/a.h"'
  expect fail codegen/a.cpp '#include "quern/devices/device.h"'
  expect fail codegen/a.h '#  include "quern/runtime/kernel.h"'
  expect fail codegen/sub/a.h '#include <quern/runtime/kernel.h>'
  expect fail codegen/a.cpp '#include "b.h"'
  expect fail codegen/a.cpp '#include "quern/codegen/../runtime/kernel.h"'
  expect fail codegen/a.cpp '#include <thread>'
  expect fail codegen/a.cpp '#include <nlohmann/json.hpp>'
  expect fail codegen/a.cpp '#include <unistd.h>'
  expect fail codegen/a.cpp 'auto x = std::getenv("HOME");'
  expect fail devices/a.cpp '#include "quern/runtime/kernel.h"'
  expect fail devices/a.cpp '#include <llvm/IR/Module.h>'
  expect fail devices/cpu/a.cpp '#include "quern/devices/opencl/opencl.h"'
  expect fail devices/cpu/a.cpp '#include <cuda.h>'
  expect fail devices/cuda/a.cpp '#include <CL/cl.h>'
  expect fail devices/interpreter/a.cpp '#include <tbb/parallel_for.h>'
  expect fail runtime/a.cpp '#include <llvm/IR/Module.h>'
  expect fail runtime/a.cpp '#include "tests/help.h"'
  return "$failed"
}

if [ "${1:?the project top, or --self-test}" = --self-test ]; then
  self_test
else
  check "$1" || exit 1
fi
