#!/bin/sh
# Installs a wheel into a new virtual environment, hides Debian's Abseil, Protobuf and the rest from
# it, and compares a forecast with that of the tree, digit by digit. Usage: check_wheel.sh WHEEL...
set -eu
cd "$(dirname "$0")/.."
root=$(pwd)

# Libraries that a wheel may not need of its host.
foreign='libabsl|libproto|libpugixml|libsqlite3'
plan="-m gpt3-175b -c dgx-a100-80g:8 -s tp=8,pp=8,vpp=3,mb=1,recompute=full,attn=unfused
  --batch 64 --dtype fp16 --profile megatron-2021 --json"

for wheel in "$@"; do
  case $wheel in
    *"$(.venv/bin/python -c 'import sys; print("cp%d%d" % sys.version_info[:2])')"*) ;;
    *) echo "check_wheel: $wheel is for another Python: not run"; continue ;;
  esac
  case $wheel in
    *manylinux_2_[0-9]_* | *manylinux_2_[12][0-9]_* | *manylinux_2_3[0-6]_*) ;;
    *) echo "check_wheel: $wheel needs a newer glibc than Debian 12 has" >&2; exit 1 ;;
  esac
  size=$(stat -c %s "$wheel")
  [ "$size" -le 25000000 ] || { echo "check_wheel: $size bytes are too many" >&2; exit 1; }
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
  .venv/bin/python -m venv "$dir/venv"
  "$dir/venv/bin/pip" install --quiet --disable-pip-version-check \
    --constraint requirements.lock "$wheel"
  # What a forecast takes to simulate differs from run to run.
  steady='import json, sys; d = json.load(sys.stdin); del d["simulate_s"]; print(json.dumps(d))'
  # shellcheck disable=SC2086  # words on purpose
  PYTHONPATH="$root/python" .venv/bin/python -m plancast predict $plan | .venv/bin/python -c "$steady" \
    > "$dir/tree.json"
  cat > "$dir/clean.sh" <<EOF
set -eu
cd "$dir"
unset PYTHONPATH LD_LIBRARY_PATH
venv/bin/plancast predict $(echo $plan) > raw.json
venv/bin/python -c '$steady' < raw.json > wheel.json
venv/bin/python - <<'EOP'
import re
import plancast as pc
pc.predict(pc.Model.preset("resnet50"), pc.Machine.preset("dgx-h100"), "mb=32")
with open("/proc/self/maps") as maps:
    used = {line.split()[-1] for line in maps if "/" in line}
foreign = [path for path in used if re.search(r"$foreign", path) and "plancast.libs" not in path]
assert not foreign, foreign
assert "$root" not in pc.__file__, pc.__file__
EOP
EOF
  if unshare --mount true 2>/dev/null; then
    # Of this process alone: empty files in place of the libraries.
    hide=$(ldconfig -p | grep -E "$foreign" | sed 's/.* => //' | xargs -r readlink -f | sort -u)
    unshare --mount sh -c '
      : > "$1/nothing"
      for library in $2; do mount --bind "$1/nothing" "$library"; done
      sh "$1/clean.sh"' sh "$dir" "$hide"
    how="with $(echo "$hide" | wc -l) libraries of the host hidden"
  else
    sh "$dir/clean.sh"
    how="without loading a library of the host that it should bring"
  fi
  cmp "$dir/tree.json" "$dir/wheel.json"
  echo "check_wheel: $(basename "$wheel"), $size bytes: forecasts as the tree does, $how"
  for command in "venv/bin/python -c pass" "venv/bin/python -c 'import plancast'" \
    "venv/bin/plancast --help"; do
    best=$(cd "$dir" && unset PYTHONPATH && venv/bin/python - "$command" <<'EOF'
import resource
import subprocess
import sys
import time

rows = []
for _ in range(5):
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(sys.argv[1], shell=True, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    rows.append((time.perf_counter() - begin, cpu))
print(f"{min(t for t, _ in rows):.3f} s, {min(c for _, c in rows):.3f} CPU s")
EOF
)
    echo "check_wheel: $command: best of five $best"
  done
  rm -rf "$dir"
done
