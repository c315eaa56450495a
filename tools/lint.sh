#!/bin/sh
# Every check that needs no build. Runs all of them, then fails if one did.
cd "$(dirname "$0")/.." || exit 1
failed=

check() {
  name=$1
  shift
  if "$@"; then echo "lint: $name ok"; else failed="$failed $name"; fi
}

files() { git ls-files -co --exclude-standard -- "$@" | grep -v '^third_party/'; }

# Names the files; what is wrong with them `make format` knows.
clang_format() {
  unformatted=$(files '*.h' '*.cc' | xargs -r clang-format --dry-run -Werror 2>&1 |
    sed -n 's/:[0-9]*:[0-9]*: error: .*//p' | sort -u)
  [ -z "$unformatted" ] || {
    echo "$unformatted" >&2
    return 1
  }
}
mypy_package() { [ ! -d python/plancast ] || .venv/bin/mypy; }

check clang-format clang_format
check ruff .venv/bin/ruff check --quiet .
check ruff-format .venv/bin/ruff format --check --quiet .
check mypy mypy_package
check layout .venv/bin/python tools/check_layout.py
check imports .venv/bin/python tools/check_imports.py

[ -z "$failed" ] || {
  echo "lint: failed:$failed (make format mends the formatting)" >&2
  exit 1
}
