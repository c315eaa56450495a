"""Fails when a file has outgrown one concept (see CONTRIBUTING.md)."""

import pathlib
import subprocess
import sys

_LIMITS = {".h": 250, ".cc": 500, ".py": 400}


def _our_files() -> list[pathlib.Path]:
    listing = subprocess.check_output(
        ["git", "ls-files", "-co", "--exclude-standard"], text=True
    ).splitlines()
    return [pathlib.Path(p) for p in listing if not p.startswith("third_party/")]


def main() -> int:
    too_long = []
    for path in _our_files():
        limit = _LIMITS.get(path.suffix)
        if limit is None or not path.exists():
            continue
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > limit:
            too_long.append(f"{path}: {lines} lines; {path.suffix} files hold at most {limit}")
    if too_long:
        print("\n".join(too_long), file=sys.stderr)
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
