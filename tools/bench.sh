#!/bin/sh
# Builds and runs every benchmark, first the table of targets (speed_table); the
# results of the others as JSON in out/benchmarks as well.
# Usage: bench.sh [NAME...] runs only those whose name holds one of the words.
set -eu
cd "$(dirname "$0")/.."
bazel=${BAZEL:-bazel}
out=out/benchmarks
mkdir -p $out

wanted() {
  name=$1
  shift
  [ $# -gt 0 ] || return 0
  for word in "$@"; do
    case $name in *"$word"*) return 0 ;; esac
  done
  return 1
}

# shellcheck disable=SC2086  # flags are words
$bazel build -c opt ${BAZEL_FLAGS:-} //benchmarks/...
# shellcheck disable=SC2086
bin=$($bazel info -c opt ${BAZEL_FLAGS:-} bazel-bin 2>/dev/null)
if wanted speed_table ${1+"$@"}; then
  PLANCAST_CLI=$PWD/.venv/bin/plancast "$bin/benchmarks/speed_table" | tee "$out/speed_table.md"
fi
for label in $($bazel query 'kind(cc_binary, //benchmarks/...)' 2>/dev/null); do
  path=$(echo "${label#//}" | tr : /)
  name=$(basename "$path")
  [ "$name" != speed_table ] || continue
  wanted "$name" ${1+"$@"} || continue
  echo "== $name"
  "$bin/$path" --benchmark_out="$out/$name.json" --benchmark_out_format=json
done
for script in benchmarks/*.py; do
  [ -e "$script" ] || continue
  name=$(basename "$script" .py)
  wanted "$name" ${1+"$@"} || continue
  echo "== $name"
  .venv/bin/python "$script"
done
