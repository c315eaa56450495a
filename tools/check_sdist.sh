#!/bin/sh
# Fails where a source distribution lacks a file that the extension module is built from.
# Usage: check_sdist.sh ARCHIVE
set -eu
cd "$(dirname "$0")/.."
${BAZEL:-bazel} query 'kind("(source|generated) file", deps(//python/plancast:_core.so))
  union buildfiles(deps(//python/plancast:_core.so))' 2>/dev/null |
  grep '^//' | sed 's,^//,,; s,^:,,; s,:,/,' | sort -u |
  while read -r file; do [ ! -f "$file" ] || echo "$file"; done > dist/needed
tar -tzf "$1" | sed 's,^[^/]*/,,' | sort > dist/held
missing=$(sort dist/needed | comm -23 - dist/held)
count=$(wc -l < dist/needed)
rm dist/needed dist/held
[ -z "$missing" ] || {
  echo "check_sdist: not in $1:" >&2
  echo "$missing" >&2
  exit 1
}
echo "check_sdist: $(basename "$1") has all $count files that a build reads"
