#!/usr/bin/env bash
# Builds Quern, shows its devices, then compiles, runs and checks kernels: those of the kernel files
# in $QUERN_CORPUS, or the ones that come with Quern.
set -euo pipefail
cd "$(dirname "$0")"
source cmake/packages.sh

install_packages
build release
build/quern devices
corpus=${QUERN_CORPUS:-../shared/corpus}
if [ ! -d "$corpus" ]; then
  corpus=examples/kernels
fi
build/quern verify "$corpus"/*.jsonl
