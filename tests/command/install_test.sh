#!/usr/bin/env bash
# A program outside builds against an installed Quern by find_package, and runs.
set -euo pipefail

build=$(dirname "$QUERN")
if grep -q '^QUERN_SANITIZE:STRING=..*' "$build/CMakeCache.txt"; then
  echo "skipped: a sanitized library needs a sanitized program"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$build" --prefix "$folder/installed" >"$folder/install.log"
cp "$QUERN_SOURCE_DIR/examples/softmax.cpp" "$folder"
cat >"$folder/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(Consumer LANGUAGES CXX)
find_package(Quern 0.1 REQUIRED)
add_executable(softmax softmax.cpp)
target_link_libraries(softmax PRIVATE quern::quern)
EOF
cmake -S "$folder" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/installed" >"$folder/configure.log"
cmake --build "$folder/build" >"$folder/build.log"
test "$("$folder/build/softmax")" = "$("$build/examples/example_softmax")"
"$folder/installed/bin/quern" devices >"$folder/devices.log"
