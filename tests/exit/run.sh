#!/usr/bin/env bash
# run.sh PROGRAM: many processes that end in the middle of work, each with its own exit code and
# without a word. QUERN_EXIT_RUNS=N makes it N runs of each kind.
set -u
runs=${QUERN_EXIT_RUNS:-30}
# What the threads of before hold is lost in a forked child, and no leak.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
failed=0
for work in compile launch both "compile atexit" "launch atexit" "both fork" "both atexit fork"; do
  for ((i = 1; i <= runs; ++i)); do
    # shellcheck disable=SC2086  # a list of words
    said=$(timeout 60 "$1" $work $((10 + 90 * i / runs)) 2>&1)
    code=$?
    if [ $code -ne 7 ] || [ -n "$said" ]; then
      echo "$work, run $i: exit code $code, expected 7. $said"
      failed=1
    fi
  done
done
exit $failed
