#!/usr/bin/env bash
# Builds Quern and runs its tests: ./test.sh [release|debug|asan|tsan]
set -euo pipefail
cd "$(dirname "$0")"
source cmake/packages.sh

preset=${1:-release}
install_packages
build "$preset"
ctest --preset "$preset"
