"""Fails when a file has outgrown one concept, or a folder its room (see CONTRIBUTING.md)."""

import collections
import pathlib
import subprocess
import sys

_LIMITS = {".h": 250, ".cc": 500, ".py": 400}
_MOST_IN_FOLDER = 30  # C++ files of our own, tests aside


def _our_files() -> list[pathlib.Path]:
    listing = subprocess.check_output(
        ["git", "ls-files", "-co", "--exclude-standard"], text=True
    ).splitlines()
    return [pathlib.Path(p) for p in listing if not p.startswith("third_party/")]


def main() -> int:
    complaints = []
    folders: collections.Counter[pathlib.Path] = collections.Counter()
    for path in _our_files():
        limit = _LIMITS.get(path.suffix)
        if limit is None or not path.exists():
            continue
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > limit:
            complaints.append(f"{path}: {lines} lines; {path.suffix} files hold at most {limit}")
        if path.suffix in (".h", ".cc") and path.parts[0] != "tests":
            folders[path.parent] += 1
    for folder, count in folders.items():
        if count > _MOST_IN_FOLDER:
            complaints.append(
                f"{folder}: {count} C++ files; a folder holds at most {_MOST_IN_FOLDER}. Make "
                "rooms in it (docs/architecture.md)."
            )
    if complaints:
        print("\n".join(complaints), file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
