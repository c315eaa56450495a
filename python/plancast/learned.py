"""What a user's own runs tell of forecasts: evidence, its posterior, and the file of both.

A run tells ln(measured / forecast), which hangs on the factors of the forecast's error: kernels of
a GPU, algorithms on its links, the software, exposed communication, the bubble and the host's part,
each by its share of the time. The factors are believed to be normal, with scales that isolated
measurements leave open; the posterior is the linear Gaussian one, with Student weights for runs
that are far from what all others say (docs/learning.md).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plancast import documents, files
from plancast.arguments import shipped_profile
from plancast.cached import cached_property
from plancast.checked import checked
from plancast.errors import InputError
from plancast.immutable import Immutable
from plancast.learned_memory import MemoryEvidence, MemoryFact, memory_facts
from plancast.shown import Shown
from plancast.textual import brief

if TYPE_CHECKING:
    from rich.console import RenderableType

    from plancast.forecast import Forecast

# Version 1 has runs alone: all of the same luck, and nothing of memory.
_FORMAT, _VERSION, _READ = "plancast learned", 2, (1, 2)
# Scales, logarithms, that work on public runs with their source left out (issue of learning):
# of the software about its level, of parts of the time, of one plan against others. Isolated
# errors of kernels and links count twice, for a training step is not an isolated loop.
_SOFTWARE, _PART, _PLAN, _ISOLATED = 0.06, 0.25, 0.06, 2.0
_FREEDOM, _LEAST_LUCK = 4, 1e-3
_STEPS, _TOLERANCE = 200, 1e-12
# A run counts for so little where others contradict it.
_DOUBTED = 0.4
_MOST_RUNS = 10_000
# Between the name of a run and of a part of it that tells of itself.
PART_OF = " > "


def believed(name: str, isolated: float) -> float:
    """The scale of a factor before any run of the user's is seen."""
    if name.startswith("software/"):
        return _SOFTWARE
    return _PART if name.startswith("part/") else _ISOLATED * isolated


@dataclass(frozen=True)
class Evidence:
    """One run: ln(measured / forecast), and of each factor its share of the time and scale."""

    run: str
    gpu: str
    log: float
    shares: Mapping[str, tuple[float, float]]
    luck: float = _PLAN  # the scale of what hangs on no factor

    @classmethod
    def of(cls, run: str, gpu: str, forecast: Forecast, measured: float) -> Evidence:
        """A forecast (with or without what was learned before) beside what was measured, s."""
        log = float(np.log(measured / forecast.iteration_time)) + forecast.learned_log
        shares = {
            name: (share, believed(name, sigma))
            for name, (share, sigma) in forecast.learnable().items()
            if share > 0 and believed(name, sigma) > 0
        }
        return cls(run, gpu, log, shares)


@dataclass(frozen=True)
class Fact:
    """What was learned of one factor, logarithms: how far it is off, and how sure that is."""

    name: str
    change: float
    before: float
    after: float


@checked
@dataclass(frozen=True, repr=False)
class Learned(Immutable, Shown):
    """What runs tell; give it to `Session(learned=...)`.

    >>> nothing = Learned(())
    >>> nothing.gpus, len(nothing)
    (frozenset(), 0)
    """

    evidence: tuple[Evidence, ...]
    source: str = field(default="", compare=False)
    memory: tuple[MemoryEvidence, ...] = ()

    @property
    def gpus(self) -> frozenset[str]:
        """The accelerators that the runs are about."""
        return frozenset([*(e.gpu for e in self.evidence), *(e.gpu for e in self.memory)])

    def __len__(self) -> int:
        runs = [*(e.run for e in self.evidence), *(e.run for e in self.memory)]
        return len({run.partition(PART_OF)[0] for run in runs})

    def memory_facts(self) -> list[MemoryFact]:
        """By how much devices hold more than forecast, of each software that runs are about."""
        return list(self._memory_facts)

    def held(self, software: str) -> float:
        """The same of one: the share of a device's memory that forecasts add."""
        of = shipped_profile(software)
        return sum(fact.beyond for fact in self._memory_facts if fact.software == of)

    def facts(self) -> list[Fact]:
        """Of each factor that the runs hang on; those that moved most first."""
        names, mean, covariance, _ = self._posterior
        before = self._scales
        facts = [
            Fact(name, float(mean[i]), before[name], float(np.sqrt(max(covariance[i, i], 0.0))))
            for i, name in enumerate(names)
        ]
        return sorted(facts, key=lambda f: (-abs(f.change), f.name))

    def told(self, shares: Mapping[str, tuple[float, float]]) -> float:
        """ln(median of runs / forecast without them) of a plan with these shares."""
        return sum(self._changes.get(name, 0.0) * share for name, (share, _) in shares.items())

    def change(self, name: str) -> float:
        """What was learned of a factor, a logarithm; 0 of one that no run hangs on."""
        return self._changes.get(name, 0.0)

    def doubts(self) -> list[tuple[str, float]]:
        """Runs that the others contradict, and ln(measured / what all say) of each."""
        weights, rest = self._posterior[3]
        return [
            (e.run, float(off))
            for e, weight, off in zip(self.evidence, weights, rest, strict=True)
            if weight < _DOUBTED
        ]

    def teaches(self, candidates: Sequence[Forecast]) -> list[float]:
        """Of each plan, by how much a run of it would narrow the intervals of all, on average.

        Relative: 0.3 says that scales shrink by 30 %.
        """
        names, _, covariance, _ = self._posterior
        known = {name: i for i, name in enumerate(names)}
        shares = [f.learnable() for f in candidates]
        for name in sorted({name for s in shares for name in s}):
            known.setdefault(name, len(known))
        size = len(known)
        scales = np.zeros(size)
        for s in shares:
            for name, (_, sigma) in s.items():
                scales[known[name]] = max(scales[known[name]], believed(name, sigma))
        wide = np.diag(scales**2)
        wide[: len(names), : len(names)] = covariance
        rows = np.zeros((len(shares), size))
        for row, s in enumerate(shares):
            for name, (share, _) in s.items():
                rows[row, known[name]] = share
        before = np.einsum("ij,jk,ik->i", rows, wide, rows) + _PLAN**2
        out = []
        for run in rows:
            gain = wide @ run
            after = before - (rows @ gain) ** 2 / (run @ gain + _PLAN**2)
            out.append(float(np.mean(1 - np.sqrt(after / before))))
        return out

    def merge(self, *others: Learned) -> Learned:
        """The runs of all; a run that is in several counts once."""
        found = {e.run: e for learned in (self, *others) for e in learned.evidence}
        held = {e.run: e for learned in (self, *others) for e in learned.memory}
        return Learned(
            tuple(found[run] for run in sorted(found)),
            self.source,
            tuple(held[run] for run in sorted(held)),
        )

    def write(self, path: str | Path) -> None:
        """Writes the file that `--learned` and `Learned.read` take."""
        files.write_text(path, json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def read(cls, path: str | Path) -> Learned:
        """Reads what `write` wrote. Raises InputError for any other file."""
        try:
            parsed = documents.parse_json(files.read_text(path), str(path))
            body = {key: parsed[key] for key in ("format", "version", "evidence")}
            if parsed["version"] == _VERSION:
                body["memory"] = parsed["memory"]
            if body["format"] != _FORMAT or body["version"] not in _READ:
                raise InputError(
                    f"{path}: it is `{body['format']}`, version {body['version']}; this release "
                    f"reads `{_FORMAT}`, version {_VERSION}. Learn it anew."
                )
            if parsed.get("checksum") != _checksum(body):
                raise InputError(
                    f"{path}: the checksum does not match what it says; it was changed or cut "
                    "off. Write it again with `plancast learn`."
                )
            evidence = tuple(_evidence_of(entry) for entry in body["evidence"])
            memory = tuple(MemoryEvidence.parse(entry) for entry in body.get("memory", ()))
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{path}: no file of `plancast learn` ({brief(repr(error))}). Write one with "
                "`plancast learn runs.csv -o FILE`."
            ) from None
        if (many := max(len(evidence), len(memory))) > _MOST_RUNS:
            raise InputError(f"{path}: {many:,} runs; {_MOST_RUNS:,} are the most.")
        return cls(evidence, str(path), memory)

    def to_dict(self) -> dict[str, Any]:
        """The file as JSON."""
        body = {
            "format": _FORMAT,
            "version": _VERSION,
            "evidence": [
                {
                    "run": e.run,
                    "gpu": e.gpu,
                    "log": e.log,
                    "luck": e.luck,
                    "shares": {name: list(pair) for name, pair in sorted(e.shares.items())},
                }
                for e in self.evidence
            ],
            "memory": [e.to_dict() for e in self.memory],
        }
        return {**body, "checksum": _checksum(body)}

    def summary(self) -> dict[str, Any]:
        """What `plancast learn --json` prints."""
        return {
            "runs": len(self),
            "gpus": sorted(self.gpus),
            "factors": {
                f.name: {"log": f.change, "scale_before": f.before, "scale": f.after}
                for f in self.facts()
            },
            "memory": {
                f.software: {"share": f.beyond, "scale_before": f.before, "scale": f.after}
                for f in self._memory_facts
            },
            "doubts": dict(self.doubts()),
        }

    def check(self, gpu: str) -> None:
        """Raises InputError where the runs are about other accelerators than `gpu`."""
        missing = sorted(set(gpu.split("+")) - self.gpus)
        if self.gpus and missing:
            raise InputError(
                f"{self.source or 'what was learned'} is about {', '.join(sorted(self.gpus))} and "
                f"the machine has {' and '.join(missing)}. Learn from runs there, or leave it out."
            )

    def fields(self) -> tuple[list[str], list[float], list[float], float]:
        """What forecasts take (planner/uncertainty/learned.h)."""
        names, mean, covariance, _ = self._posterior
        # No time hangs on memory's factors; what devices hold does (bindings/held.h).
        held = self._memory_facts
        wide = np.pad(covariance, (0, len(held)))
        return (
            [*names, *(f"memory/{fact.software}" for fact in held)],
            [*mean.tolist(), *(fact.beyond for fact in held)],
            wide.ravel().tolist(),
            _PLAN,
        )

    @cached_property
    def _memory_facts(self) -> tuple[MemoryFact, ...]:
        return tuple(memory_facts(self.memory))

    @cached_property
    def _changes(self) -> dict[str, float]:
        names, mean, _, _ = self._posterior
        return dict(zip(names, mean.tolist(), strict=True))

    @cached_property
    def _scales(self) -> dict[str, float]:
        scales: dict[str, float] = {}
        for e in self.evidence:
            for name, (_, scale) in e.shares.items():
                scales[name] = max(scales.get(name, 0.0), scale)
        return scales

    @cached_property
    def _posterior(
        self,
    ) -> tuple[tuple[str, ...], np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Names, mean, covariance, and of each run its weight and what is left of its logarithm."""
        names = tuple(sorted(self._scales))
        shares = np.array(
            [[e.shares.get(name, (0.0, 0.0))[0] for name in names] for e in self.evidence]
        ).reshape(len(self.evidence), len(names))
        before = np.diag(np.array([self._scales[name] ** 2 for name in names]))
        log = np.array([e.log for e in self.evidence])
        luck = np.array([e.luck for e in self.evidence])
        weights, mean, gain = np.ones(len(log)), np.zeros(len(names)), np.zeros(shares.T.shape)
        for _ in range(_STEPS if len(log) else 0):
            spread = shares @ before @ shares.T + np.diag(luck**2 / weights)
            gain = before @ shares.T @ np.linalg.inv(spread)
            mean, last = gain @ log, mean
            weights = (_FREEDOM + 1) / (_FREEDOM + ((log - shares @ mean) / luck) ** 2)
            if np.abs(mean - last).max(initial=0.0) < _TOLERANCE:
                break
        covariance = before - gain @ shares @ before
        return names, mean, (covariance + covariance.T) / 2, (weights, log - shares @ mean)

    def __repr__(self) -> str:
        about = ", ".join(sorted(self.gpus)) or "nothing"
        runs = "1 run" if len(self) == 1 else f"{len(self)} runs"
        return f"<Learned from {runs} on {about}>"

    def __rich__(self) -> RenderableType:
        from plancast.report.learned import learned_table

        return learned_table(self)


def _evidence_of(entry: Mapping[str, Any]) -> Evidence:
    shares = {
        str(name): (float(share), float(scale)) for name, (share, scale) in entry["shares"].items()
    }
    log, luck = float(entry["log"]), float(entry.get("luck", _PLAN))
    figures: Iterable[float] = [log, luck, *(x for pair in shares.values() for x in pair)]
    if (
        not all(abs(x) < 10 for x in figures)
        or any(s < 0 for pair in shares.values() for s in pair)
        or luck < _LEAST_LUCK
    ):
        raise ValueError(f"run {entry['run']} has figures that are none of shares")
    return Evidence(str(entry["run"]), str(entry["gpu"]), log, shares, luck)


def _checksum(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
