"""Rows of a profiled run beside its forecast."""

from __future__ import annotations

from dataclasses import dataclass

# Sizes of one collective that are this close are the same one, padded by one side.
_SAME_SIZE = 0.02


@dataclass(frozen=True)
class Row:
    """Kernels, or collectives, that are alike, in an iteration; seconds of all together.

    `kind` is a class of kernels (run_traces/kernels.yaml) or a collective, `what` that, a product
    of the forecast or a collective with size and ranks. Seconds are None where a side has none,
    and those of the forecast as simulated.
    """

    kind: str
    what: str
    forecast_count: int
    run_count: int
    forecast_s: float | None
    run_s: float | None
    is_collective: bool = False
    # Of the forecast's error: the seconds that hang on each and its scale.
    factors: tuple[tuple[str, float, float], ...] = ()

    @property
    def times(self) -> float | None:
        """What the run takes of what is forecast; None where a side has nothing."""
        if not self.forecast_s or not self.run_s:
            return None
        return self.run_s / self.forecast_s

    def to_dict(self) -> dict[str, object]:
        """Its figures by name."""
        return {
            "what": self.what,
            "forecast_count": self.forecast_count,
            "run_count": self.run_count,
            "forecast_s": self.forecast_s,
            "run_s": self.run_s,
            "times": self.times,
        }

    @property
    def longer_s(self) -> float:
        """By how much the run takes longer."""
        return (self.run_s or 0.0) - (self.forecast_s or 0.0)


def same_size(a: float, b: float) -> bool:
    """Whether these are sizes of one collective."""
    return abs(a - b) <= _SAME_SIZE * max(a, b)


def named(kind: str, size: int, ranks: int) -> str:
    """A collective in words.

    >>> named("all_gather", 436224000, 8), named("send_recv", 4096, 0)
    ('all_gather 416 MiB over 8', 'send_recv 4 KiB')
    """
    amount = f"{size:,} B"
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            number = size / (1 << shift)
            amount = f"{number:,.{1 if number < 100 and number % 1 >= 0.05 else 0}f} {unit}"
            break
    return f"{kind} {amount}" + (f" over {ranks}" if ranks else "")
