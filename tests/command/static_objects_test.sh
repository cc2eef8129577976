#!/usr/bin/env bash
# No object file of the library registers a destructor of a static object: threads may still need it
# while the process exits.
set -euo pipefail

build=$(dirname "$QUERN")
objects=$(find "$build/CMakeFiles" -path '*quern_*.dir/*' -name '*.o')
bad=$(for object in $objects; do
  if nm --undefined-only "$object" | grep -qE ' (__cxa_atexit|__cxa_thread_atexit)$'; then
    echo "$object"
  fi
done)
if [ -z "$objects" ] || [ -n "$bad" ]; then
  echo "static or thread-local objects with a destructor in: $bad"
  exit 1
fi
