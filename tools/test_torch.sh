#!/bin/sh
# Runs the tests of importers and of profiling with the optional packages, which it installs in
# .venv-torch: several hundred megabytes. Extra arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."

wanted=$(cat requirements.lock tools/test_torch.sh | sha256sum)
stamp=.venv-torch/setup.stamp
if [ "$(cat $stamp 2>/dev/null)" != "$wanted" ]; then
  echo "test-torch: filling .venv-torch" >&2
  [ -x .venv-torch/bin/python ] || "${PYTHON:-/usr/bin/python3}" -m venv .venv-torch
  pip=".venv-torch/bin/python -m pip install -qq --disable-pip-version-check"
  $pip --requirement requirements.lock
  # torch wants a newer setuptools than the lock file's.
  $pip torch==2.13.0 transformers onnx onnxscript
  echo "$wanted" > $stamp
fi
exec env PYTHONPATH=python:tests/python/importers:tests/python/importers/aten \
  .venv-torch/bin/python -m pytest -q -p no:cacheprovider tests/python/importers tests/fuzz \
  tests/python/profile_calls_test.py "$@"
