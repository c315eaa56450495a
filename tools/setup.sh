#!/bin/sh
# Installs what the build needs: Debian packages, and .venv from requirements.lock.
# Does nothing, fast, when that has been done. Run from anywhere.
set -eu
cd "$(dirname "$0")/.."

packages="bazel-bootstrap clang-format clang-tidy g++ git libabsl-dev libbenchmark-dev
  libeigen3-dev libgmock-dev libgtest-dev libprotobuf-dev libpugixml-dev
  libsqlite3-dev make pkg-config protobuf-compiler pybind11-dev python3-dev python3-venv
  zlib1g-dev"
# What tests of pages look with; they skip where a system has none of this kind.
browser="chromium chromium-driver"
# Debian's interpreter, because python3-dev has the headers of that one.
python=${PYTHON:-/usr/bin/python3}

wanted=$(cat requirements.lock tools/setup.sh | sha256sum)
stamp=.venv/setup.stamp
if [ -x .venv/bin/python ] && [ "$(cat $stamp 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi

absent() {
  for package in "$@"; do
    case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
      "install ok installed") ;;
      *) printf ' %s' "$package" ;;
    esac
  done
}
# shellcheck disable=SC2086  # words on purpose
missing=$(absent $packages) unseen=$(absent $browser)
if [ -n "$missing$unseen" ]; then
  echo "setup: installing$missing$unseen" >&2
  sudo=
  if [ "$(id -u)" != 0 ]; then
    sudo=$(command -v sudo) || {
      echo "setup: as root, run: apt-get install -y$missing$unseen" >&2
      exit 1
    }
  fi
  # shellcheck disable=SC2086  # words on purpose
  {
    $sudo apt-get update -q
    install="$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends"
    [ -z "$missing" ] || $install $missing
    [ -z "$unseen" ] || $install $unseen || echo "setup: no chromium: tests of pages will skip"
  } >&2
fi

echo "setup: filling .venv from requirements.lock" >&2
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install -qq --disable-pip-version-check --requirement requirements.lock
echo "$wanted" > $stamp
