#!/usr/bin/env bash
# README's example builds and runs in a project outside, by every way there is to reach Quern. The
# project has headers of its own whose paths are those of Quern's folders.
set -euo pipefail

build=$(dirname "$QUERN")
cache=$build/CMakeCache.txt
if grep -q '^QUERN_SANITIZE:STRING=..*' "$cache"; then
  echo "skipped: a sanitized library needs a sanitized program"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
expected=$("$build/examples/example_softmax")

mkdir -p "$folder/user/runtime" "$folder/user/codegen"
cd "$folder/user"
echo '#define USERS_KERNEL 1' >runtime/kernel.h
echo '#define USERS_ERROR 1' >codegen/error.h
cat >main.cpp <<'END'
#include "codegen/error.h"
#include "runtime/kernel.h"
static_assert(USERS_KERNEL && USERS_ERROR);
END
cat "$QUERN_SOURCE_DIR/examples/softmax.cpp" >>main.cpp

# check NAME PROGRAM: the program says what the example in the tree says.
check() {
  local found
  found=$("$2")
  if [ "$found" != "$expected" ]; then
    echo "$1: expected '$expected', found '$found'"
    exit 1
  fi
}

# quiet COMMAND...: its output is shown if it fails.
quiet() {
  if ! "$@" >"$folder/log" 2>&1; then
    cat "$folder/log"
    echo "failed: $*"
    exit 1
  fi
}

# use_package PREFIX: by find_package.
use_package() {
  cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.22)
project(User LANGUAGES CXX)
find_package(Quern 0.1 REQUIRED)
add_executable(user main.cpp)
target_include_directories(user PRIVATE .)
target_link_libraries(user PRIVATE quern::quern)
END
  rm -rf build
  quiet cmake -S . -B build -DCMAKE_PREFIX_PATH="$1"
  quiet cmake --build build
  check "find_package in $1" build/user
}

# use_pkg_config PREFIX
use_pkg_config() {
  local flags
  flags=$(PKG_CONFIG_PATH=$(dirname "$(find "$1" -name quern.pc)") pkg-config --cflags --libs quern)
  # shellcheck disable=SC2086  # a list of flags
  quiet c++ -std=c++20 -I. main.cpp -o user $flags
  LD_LIBRARY_PATH=$(dirname "$(find "$1" -name 'libquern.*' | head -n 1)") check pkg-config ./user
}

# nothing_but_quern PREFIX: all headers lie in one folder of that name.
nothing_but_quern() {
  if [ "$(ls "$1/include")" != quern ]; then
    echo "$1/include holds: $(ls "$1/include")"
    exit 1
  fi
}

quiet cmake --install "$build" --prefix "$folder/static"
nothing_but_quern "$folder/static"
use_package "$folder/static"
use_pkg_config "$folder/static"
quiet "$folder/static/bin/quern" devices

# As a part of the user's own build, and as a shared library.
cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.22)
project(User LANGUAGES CXX)
add_subdirectory($QUERN_SOURCE_DIR quern)
add_executable(user main.cpp)
target_include_directories(user PRIVATE .)
target_link_libraries(user PRIVATE quern::quern)
END
generator=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$cache")
rm -rf build
quiet cmake -S . -B build -G "$generator" -DBUILD_SHARED_LIBS=ON
quiet cmake --build build --parallel 2
check add_subdirectory build/user
quiet cmake --install build/quern --prefix "$folder/shared"
nothing_but_quern "$folder/shared"
library=$(find "$folder/shared" -name libquern.so)
# What the linker sees are names of the API (and templates of the standard library, which are weak).
strangers=$(nm --dynamic --defined-only --demangle "$library" | grep -E '^[0-9a-f]+ [A-TX-Z] ' |
  grep -vE ' (typeinfo|vtable)' | grep -vE ' quern::' || true)
if [ -n "$strangers" ] || nm -DC "$library" | grep -qE ' [TD] quern::(cpu|llvm_ir|Simplifier)'; then
  echo "$library shows more than the API: $strangers"
  exit 1
fi
use_package "$folder/shared"
use_pkg_config "$folder/shared"
