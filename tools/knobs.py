"""Writes docs/memory_knobs.md and its pictures: each knob of memory by example (`make knobs`)."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
GIB = 2**30
HEAD = """# Memory, knob by knob

Made by `make knobs` from [tools/knobs.yaml](../tools/knobs.yaml). Every line is a run of

    plancast predict -m {model} --seq {seq} -c {machine} --batch {batch} --profile P -s STRATEGY

with the options beside it: the fullest device, GiB (allocated, what `nvidia-smi` shows, and what
it keeps in its host's memory), and seconds of an iteration. What each knob does is in
[sharding.md](sharding.md) and [memory.md](memory.md). Pictures show the live memory of that
device over an iteration.
"""


def main() -> int:
    spec = yaml.safe_load((ROOT / "tools" / "knobs.yaml").read_text())
    page = [HEAD.format(**spec)]
    for group in spec["groups"]:
        page += [f"\n## {group['title']}\n", group["text"].strip(), ""]
        page += [
            "| profile | strategy | | allocated | device | host | iteration s | picture |",
            "|---|---|---|---|---|---|---|---|",
        ]
        page += [_row(spec, knob) for knob in group["knobs"]]
        page += [""]
        page += [_example(spec, group["knobs"][-1])]
    (ROOT / "docs" / "memory_knobs.md").write_text("\n".join(page).rstrip() + "\n")
    return 0


def _words(spec: dict[str, Any], knob: dict[str, Any]) -> list[str]:
    words = ["predict", "-m", spec["model"], "--seq", str(spec["seq"]), "-c", spec["machine"]]
    words += ["--batch", str(spec["batch"]), "-s", knob["strategy"]]
    words += ["--profile", knob.get("profile", spec["base"]["profile"])]
    return words + shlex.split(knob.get("options", ""))


def _run(words: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "plancast", *words], capture_output=True, text=True, cwd=ROOT
    )
    if done.returncode != 0:
        raise SystemExit(f"knobs: {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def _row(spec: dict[str, Any], knob: dict[str, Any]) -> str:
    picture = f"pictures/{knob['name']}.svg"
    words = _words(spec, knob)
    forecast = json.loads(_run([*words, "--json", "--memory-svg", f"docs/{picture}"]))
    fullest = max(forecast["memory"], key=lambda row: row["device"])
    cells = [
        knob.get("profile", spec["base"]["profile"]),
        f"`{' '.join([knob['strategy'], knob.get('options', '')]).strip()}`",
        knob["says"],
        *(f"{fullest.get(key, 0) / GIB:.1f}" for key in ("allocated", "device", "host")),
        f"{forecast['iteration_time_s']:.2f}",
        f"[{knob['name']}]({picture})",
    ]
    return "| " + " | ".join(cells) + " |"


def _example(spec: dict[str, Any], knob: dict[str, Any]) -> str:
    """The last of a group in full: what is alive at its peak, and its picture."""
    forecast = json.loads(_run([*_words(spec, knob), "--json", "--memory-timeline"]))
    peak = max(forecast["memory_peak"], key=lambda row: row["allocated"])
    lines = [
        f"    {tensor['bytes_each'] * tensor['copies'] / GIB:8.2f} GiB  {tensor['name']}"
        for tensor in peak["tensors"][:8]
    ]
    return (
        f"At the peak of `{knob['name']}` ({knob['says']}) the largest are\n\n"
        + "\n".join(lines)
        + f"\n\n![{knob['name']}](pictures/{knob['name']}.svg)\n"
    )


if __name__ == "__main__":
    sys.exit(main())
