#!/bin/sh
# Installs what the build needs: Debian packages, and .venv from requirements.lock.
# Does nothing, fast, when that has been done. Run from anywhere.
set -eu
cd "$(dirname "$0")/.."

packages="bazel-bootstrap clang-format clang-tidy g++ git libabsl-dev libbenchmark-dev
  libeigen3-dev libgmock-dev libgtest-dev libprotobuf-dev libpugixml-dev
  libsqlite3-dev make pkg-config protobuf-compiler pybind11-dev python3-dev python3-venv
  zlib1g-dev"
# Debian's interpreter, because python3-dev has the headers of that one.
python=${PYTHON:-/usr/bin/python3}

wanted=$(cat requirements.lock tools/setup.sh | sha256sum)
stamp=.venv/setup.stamp
if [ -x .venv/bin/python ] && [ "$(cat $stamp 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi

missing=
for package in $packages; do
  case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
    "install ok installed") ;;
    *) missing="$missing $package" ;;
  esac
done
if [ -n "$missing" ]; then
  echo "setup: installing$missing" >&2
  sudo=
  if [ "$(id -u)" != 0 ]; then
    sudo=$(command -v sudo) || {
      echo "setup: as root, run: apt-get install -y$missing" >&2
      exit 1
    }
  fi
  # shellcheck disable=SC2086  # words on purpose
  {
    $sudo apt-get update -q
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
  } >&2
fi

echo "setup: filling .venv from requirements.lock" >&2
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install -qq --disable-pip-version-check --requirement requirements.lock
echo "$wanted" > $stamp
