#!/bin/sh
# Makes the built extension and the sources in python/ importable in .venv, and
# writes .venv/bin/plancast. Usage: install_dev.sh BUILT_CORE_SO
set -eu
cd "$(dirname "$0")/.."
root=$(pwd)
core=python/plancast/_core.so

# Renamed into place, so that a running process keeps the file it has mapped.
if ! cmp -s "$1" $core; then
  cp "$1" $core.new
  chmod 755 $core.new
  mv $core.new $core
fi

site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$root/python" > "$site/plancast.pth"

cat > .venv/bin/plancast.new <<EOF
#!$root/.venv/bin/python
import sys

from plancast.__main__ import main

sys.exit(main())
EOF
chmod 755 .venv/bin/plancast.new
mv .venv/bin/plancast.new .venv/bin/plancast
