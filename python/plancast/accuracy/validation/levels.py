"""What runs of a software take beyond what is simulated, learned across sources.

Measured runs lie on one side of their simulation, source by source, by a level that most of a
software's runs share: data loading, logging, hosts that limp, kernels that the data do not show.
The logarithm of that level is a sum of three terms,

    level(profile) = all + lineage(profile) + profile

each believed to be normal around 0 before any run is seen, with the scales below. What is known
of them are the medians of cells: the runs of one source under one profile on one GPU, each with
one vote, however many rows it has, and with Student weights, so that no cell moves them by much.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plancast.accuracy.validation.residuals import ErrorTerms, Residual

_FREEDOM = 4
# Scales of what is believed before runs are seen, logarithms. Round figures, chosen with the
# public rows in view: the mean error of dense models with their source left out moves by 0.1
# points where they are half or twice as large.
_ALL, _LINEAGE, _PROFILE = 0.1, 0.06, 0.06
# What a cell lies off by beside these.
_CELL = 0.06
_STEPS, _TOLERANCE = 200, 1e-10
# Sources that a level is learned from, at least.
_FEWEST_SOURCES = 3


@dataclass(frozen=True)
class Levels:
    """The fitted terms, and the sources behind each lineage."""

    all: float
    lineages: Mapping[str, float]
    profiles: Mapping[str, float]
    sources: Mapping[str, int]

    def of(self, terms: ErrorTerms) -> float:
        """ln(run / simulated) of a software; 0 of models that no level is known of."""
        if terms.lineage is None:
            return 0.0
        lineage = self.lineages.get(terms.lineage, 0.0)
        return self.all + lineage + self.profiles.get(terms.profile, 0.0)


_NONE = Levels(0.0, {}, {}, {})


def fit_levels(residuals: Iterable[Residual]) -> Levels:
    """The likeliest levels; deterministic, the order of the rows does not matter."""
    cells: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for r in residuals:
        if r.terms.lineage is not None:
            key = (r.source, r.terms.profile, r.terms.device, r.terms.lineage)
            cells[key].append(r.value)
    if len({source for source, *_ in cells}) < _FEWEST_SOURCES:
        return _NONE
    keys = sorted(cells)
    lineages = sorted({lineage for *_, lineage in keys if lineage})
    profiles = sorted({profile for _, profile, *_ in keys})
    columns = ["", *lineages, *profiles]
    terms = np.zeros((len(keys), len(columns)))
    terms[:, 0] = 1
    for row, (_, profile, _, lineage) in enumerate(keys):
        if lineage:
            terms[row, 1 + lineages.index(lineage)] = 1
        terms[row, 1 + len(lineages) + profiles.index(profile)] = 1
    value = np.array([statistics.median(cells[key]) for key in keys])
    believed = np.array([_ALL] + [_LINEAGE] * len(lineages) + [_PROFILE] * len(profiles))
    found = _likeliest(terms, value, believed)
    behind = {
        name: len({source for source, _, _, lineage in keys if lineage == name})
        for name in lineages
    }
    split = 1 + len(lineages)
    return Levels(
        all=float(found[0]),
        lineages=dict(zip(lineages, map(float, found[1:split]), strict=True)),
        profiles=dict(zip(profiles, map(float, found[split:]), strict=True)),
        sources=behind,
    )


def _likeliest(terms: np.ndarray, value: np.ndarray, believed: np.ndarray) -> np.ndarray:
    """Least squares with Student weights and normal beliefs, weighted anew until it rests."""
    at = np.zeros(terms.shape[1])
    for _ in range(_STEPS):
        off = (value - terms @ at) / _CELL
        weight = (_FREEDOM + 1) / (_FREEDOM + off**2) / _CELL**2
        matrix = terms.T @ (weight[:, None] * terms) + np.diag(1 / believed**2)
        new = np.linalg.solve(matrix, terms.T @ (weight * value))
        if np.abs(new - at).max() < _TOLERANCE:
            return new
        at = new
    return at


def centred(residuals: Sequence[Residual]) -> list[Residual]:
    """The rows about the levels that all other sources tell."""
    without = {
        source: fit_levels(r for r in residuals if r.source != source)
        for source in {r.source for r in residuals}
    }
    return [replace(r, value=r.value - without[r.source].of(r.terms)) for r in residuals]
