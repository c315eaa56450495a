"""Random strategy trees over the whole language, of models of every kind.

    python -m tests.fuzz.run --target trees --runs 10000
    python -m tests.fuzz.trees --count 2000 --seed 1       # what is refused, in which words

A tree (tests.fuzz.random_tree) either gives a forecast, which keeps the laws below, or is
refused in words.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import warnings
from collections import Counter
from pathlib import Path

import plancast as pc

from tests.fuzz.plans import apart, figures_of, senseless
from tests.fuzz.random_tree import Drawing, Tree, draw
from tests.fuzz.small_models import model_of

LONGEST_REFUSAL = 2500
# What only our own code may say.
INTERNAL = re.compile(
    r"\b(INTERNAL|UNIMPLEMENTED|INVALID_ARGUMENT|NOT_FOUND|absl|std|nullptr|Traceback)\b|::|\.cc\b"
    r"|\bk[A-Z]\w+\b|\b0x[0-9a-f]{6,}|\bnan\b|-?922337203685477580\d"
)


def unclear(refusal: str) -> str:
    """What is wrong with the words of a refusal, or nothing."""
    if not refusal.strip():
        return "a refusal without words"
    if match := INTERNAL.search(re.sub("`[^`]*`", "``", refusal)):
        return f"a refusal with `{match[0]}`: {refusal}"
    if len(refusal) > LONGEST_REFUSAL:
        return f"a refusal of {len(refusal)} characters: {refusal[:300]}"
    if not re.search(r"`|\w=|\w\*\w|\(\w|\bGPUs? \d", refusal):
        return f"a refusal that names nothing: {refusal}"
    if refusal.rstrip()[-1] not in ".?`":
        return f"a refusal that does not end: {refusal}"
    return ""


def fault_of(tree: Tree) -> tuple[str, str]:
    """What is wrong with the forecast of a tree, or nothing; and the refusal, if it is one."""
    model, machine = model_of(tree.model), pc.Machine.preset(tree.machine)

    def ask(strategy: pc.Strategy, session: pc.Session) -> pc.Forecast:
        return pc.predict(model, machine, strategy, session=session, **tree.options)

    session = pc.Session()
    try:
        strategy = pc.Strategy.from_dict(tree.document)
        forecast = ask(strategy, session)
    except pc.InputError as error:
        return unclear(str(error)), str(error)
    figures = figures_of(forecast)
    if word := senseless(forecast, figures):
        return word, ""
    again = pc.Strategy.from_yaml(strategy.to_yaml())
    if again != strategy:
        return f"another tree from YAML: {again.to_dict()}", ""
    for what, other in (
        ("from YAML", ask(again, pc.Session())),
        ("a second time", ask(strategy, session)),
    ):
        if word := apart(figures, figures_of(other)):
            return f"{what}: {word}", ""
    return verdict_apart(forecast, pc.fits(model, machine, strategy, **tree.options)[0]), ""


def verdict_apart(forecast: pc.Forecast, verdict: pc.Fit) -> str:
    """How `pc.fits` and the forecast differ, or nothing."""
    if verdict.refused:
        return f"`fits` refuses: {verdict.refused}"
    if (verdict.device, verdict.fits) != (forecast.peak_memory, forecast.fits):
        return f"`fits` says {verdict.device} bytes, the forecast {forecast.peak_memory}"
    return ""


def attempt(rng: random.Random, folder: Path) -> bool:
    """Draws a tree and tries it; true if it is not refused. Its file stays in the folder."""
    tree = Drawing(rng).tree()
    (folder / "tree.yaml").write_text(tree.text())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        word, refusal = fault_of(tree)
    assert not word, f"{word}\n{tree.text()}"
    return not refusal


def main() -> int:
    """Says how often which refusal comes, numbers and names left out."""
    parser = argparse.ArgumentParser(description="what trees are refused for")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    words: Counter[str] = Counter()
    example: dict[str, str] = {}
    for seed in range(options.seed, options.seed + options.count):
        try:
            word, refusal = fault_of(draw(seed))
        except Exception as error:
            word, refusal = f"{type(error).__name__}: {error}", ""
        if word:
            print(f"tree {seed}: {word}\n{draw(seed).text()}", flush=True)
        shape = re.sub(r"`[^`]*`", "`_`", re.sub(r"\d+", "0", refusal))[:160]
        words[shape] += 1
        example.setdefault(shape, f"{seed}: {refusal}")
    for shape, count in words.most_common():
        print(f"{count:5} {example[shape]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
