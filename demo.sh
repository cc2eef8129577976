#!/usr/bin/env bash
# Builds Quern, shows its devices, then compiles, runs and checks kernels: those of the kernel files
# in $QUERN_CORPUS, or the ones that come with Quern.
set -euo pipefail
cd "$(dirname "$0")"
source cmake/packages.sh

install_packages
echo "Building the quern command; from nothing this takes about two minutes on two cores."
build release quern
echo "Built in $SECONDS s."
build/quern devices
corpus=${QUERN_CORPUS:-../shared/corpus}
if [ ! -d "$corpus" ]; then
  corpus=examples/kernels
fi
build/quern verify "$corpus"/*.jsonl
