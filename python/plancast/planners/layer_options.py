"""How many layers of a stage are treated in which way, where all are alike and memory is short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plancast.errors import InputError


@dataclass(frozen=True)
class Option:
    """A way to treat a layer: what it costs, and the bytes of a device that the layer takes."""

    name: str
    seconds: float
    bytes: float


def cheapest(layers: int, options: Sequence[Option], room: float) -> tuple[float, list[int]] | None:
    """The least seconds of all counts of options for so many layers within `room` bytes.

    Exact, by an integer program; None if there are no such counts.

    >>> two = [Option("keep", 0, 10), Option("again", 1, 2)]
    >>> cheapest(4, two, 25)
    (2, [2, 2])
    >>> cheapest(4, two, 7) is None
    True
    """
    useful = _useful(options)
    counts = [0] * len(options)
    if layers * options[useful[-1]].bytes > room:
        return None
    if layers * options[useful[0]].bytes <= room:
        counts[useful[0]] = layers
    else:
        found = _solved(layers, [options[number] for number in useful], room)
        for number, count in zip(useful, found, strict=True):
            counts[number] = count
    seconds = sum(n * option.seconds for n, option in zip(counts, options, strict=True))
    return seconds, counts


def _useful(options: Sequence[Option]) -> list[int]:
    """Options that none is as fast and as small as, the fastest and largest first."""
    useful: list[int] = []
    for number in sorted(range(len(options)), key=lambda n: (options[n].seconds, options[n].bytes)):
        if not useful or options[number].bytes < options[useful[-1]].bytes:
            useful.append(number)
    return useful


def _solved(layers: int, ways: Sequence[Option], room: float) -> list[int]:
    import numpy as np

    from plancast.planners.assignment import import_highs, without_banner

    highspy = import_highs()
    seconds = np.array([way.seconds for way in ways])
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(ways), 2
    lp.col_cost_ = seconds / max(float(np.max(seconds)), 1e-300)
    lp.col_lower_, lp.col_upper_ = np.zeros(len(ways)), np.full(len(ways), float(layers))
    lp.row_lower_ = np.array([float(layers), -np.inf])
    lp.row_upper_ = np.array([float(layers), 1.0])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array([0, len(ways), 2 * len(ways)])
    lp.a_matrix_.index_ = np.array([*range(len(ways)), *range(len(ways))])
    sizes = np.array([way.bytes for way in ways]) / room
    lp.a_matrix_.value_ = np.concatenate([np.ones(len(ways)), sizes])
    lp.integrality_ = [highspy.HighsVarType.kInteger] * len(ways)
    with without_banner():
        solver = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("log_to_console", False),
        ("threads", 1),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 1e-9),
    ):
        solver.setOptionValue(option, value)
    solver.passModel(lp)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise InputError(f"the integer program of a stage of {layers} layers was not solved.")
    return [round(value) for value in solver.getSolution().col_value]
