"""The scoreboard of kernels as Markdown and as plain text."""

from __future__ import annotations

from itertools import groupby

from plancast import textual

from .evaluate import HELD_OUT, HOW, Score, overall

HEAD = """# How well kernels are predicted

Errors of predicted over measured time of single kernels, in percent: the mean of absolute
errors (MAPE), their median, and the bias (mean, with its sign). Made by

    plancast calibrate --kernels ../shared/data/kernels --evaluate --report docs/kernel_accuracy.md

- **shapes held out**: coefficients fitted to {kept:.0%} of the shapes, judged on the others. A
  shape is in one part on all GPUs; which, a hash with seed {seed} tells.
- **GPU held out**: no row of the GPU was seen; it is priced as a GPU without records is
  ([cost_models.md](cost_models.md#gpus-without-coefficients)), judged on all its rows.
- **data sheet**: a roofline over nominal peaks, judged on all rows.

`large` products have more than 2e10 FLOPs; `large` kernels bound by memory move more than 200 MB.
`of SOURCE`: rows of a source that no coefficient was fitted to. `training`: products timed
inside a training stack, by layout. `grouped`: those of experts, at least the host's time for
their launches (the shortest rows', 9 µs each). Norms and softmax count rows that are gone over
again as cost_models.md says.
"""
# Families and the most that their mean error may be: (shapes held out, GPU held out).
TARGETS = {
    "gemm bf16": (0.08, 0.12),
    "gemm bf16 large": (0.06, 0.08),
    "attention forward": (0.12, None),
    "elementwise large": (0.08, None),
}


def _cells(scores: list[Score]) -> list[str]:
    by_how = {score.how: score for score in scores}
    cells = []
    for how in HOW:
        score = by_how.get(how)
        if score is None:
            cells += ["", "", "", ""]
            continue
        cells += [
            str(score.rows),
            f"{100 * score.mean_error:.1f}",
            f"{100 * score.median_error:.1f}",
            f"{100 * score.bias:+.1f}",
        ]
    return cells


def _table(first: list[str], rows: list[list[str]]) -> list[str]:
    columns = [f"{how} {what}".strip() for how in ("shapes", "GPU", "data sheet")
               for what in ("rows", "MAPE", "median", "bias")]  # fmt: skip
    head = [*first, *columns]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(first) + "--:|" * len(columns)]
    return lines + ["| " + " | ".join(map(textual.markdown, row)) + " |" for row in rows]


def _targets(scores: list[Score]) -> list[str]:
    means = {(s.family, s.how): s.mean_error for s in overall(scores)}
    lines = ["| family | held out | MAPE | at most | |", "|---|---|--:|--:|---|"]
    for family, bounds in TARGETS.items():
        for how, bound in zip(HOW, bounds, strict=False):
            mean = means.get((family, how))
            if bound is None or mean is None:
                continue
            verdict = "met" if mean <= bound else "not met"
            lines.append(
                f"| {family} | {how} | {100 * mean:.1f} % | {100 * bound:.0f} % | {verdict} |"
            )
    return lines


def markdown(scores: list[Score], seed: int) -> str:
    """The whole page."""
    lines = [HEAD.format(kept=1 - HELD_OUT, seed=seed), "## Targets", "", *_targets(scores), ""]
    lines += [
        "## By family",
        "",
        "Over all rows of all GPUs; medians are of the GPUs' medians.",
        "",
    ]
    families = [[f, *_cells(list(of))] for f, of in groupby(overall(scores), lambda s: s.family)]
    lines += _table(["family"], families)
    lines += ["", "## By GPU", ""]
    gpus = [[*key, *_cells(list(of))] for key, of in groupby(scores, lambda s: (s.family, s.gpu))]
    lines += _table(["family", "GPU"], gpus)
    return "\n".join(lines) + "\n"


def text(scores: list[Score]) -> str:
    """Families in columns, for a terminal."""
    lines = [f"{'':28}{'shapes held out':>22}{'GPU held out':>22}{'data sheet':>22}",
             f"{'family':28}" + f"{'MAPE':>8}{'median':>7}{'bias':>7}" * len(HOW)]  # fmt: skip
    for family, of in groupby(overall(scores), lambda s: s.family):
        by_how = {s.how: s for s in of}
        line = f"{family:28}"
        for how in HOW:
            s = by_how.get(how)
            line += " " * 22 if s is None else (
                f"{100 * s.mean_error:7.1f}%{100 * s.median_error:6.1f}%{100 * s.bias:+6.1f}%"
            )  # fmt: skip
        lines.append(line)
    return "\n".join(lines)
