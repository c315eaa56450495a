"""Writes compile_commands.json (for clangd and clang-tidy) from `bazel aquery`."""

import json
import os
import subprocess
import sys

_QUERY = 'mnemonic("CppCompile", //...)'


def main() -> None:
    bazel = os.environ.get("BAZEL", "bazel").split()
    actions = json.loads(
        subprocess.run(
            [*bazel, "aquery", _QUERY, "--output=jsonproto"],
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
    )["actions"]
    root = subprocess.check_output([*bazel, "info", "execution_root"], text=True).strip()
    commands = {}
    for action in actions:
        arguments = action["arguments"]
        source = arguments[arguments.index("-c") + 1]
        if source.startswith(("external/", "bazel-out/")):
            continue
        commands[source] = {
            "directory": root,
            "file": source,
            "arguments": [a for a in arguments if a != "-fno-canonical-system-headers"],
        }
    with open("compile_commands.json", "w") as f:
        json.dump(list(commands.values()), f, indent=2)
    print(f"wrote {len(commands)} commands", file=sys.stderr)


if __name__ == "__main__":
    main()
