"""How much of an iteration a measured row's time covers."""

from __future__ import annotations

from plancast.accuracy.validation.architecture import UnsupportedError
from plancast.accuracy.validation.rows import Row
from plancast.accuracy.validation.software import timed_in
from plancast.forecast import Forecast

# Parts of a forecast that benchmarks leave out: of whole steps in a bare loop what the framework
# does between iterations (data, logging), of forward and backward passes the optimizer's step, too.
_BESIDE = {"step": ("other",), "passes": ("optimizer", "other")}


def timed_share(row: Row, forecast: Forecast) -> float:
    """The share of a forecast's iteration that the row's source timed.

    1, or with `timed=passes` what its forward and backward passes take, with `timed=step` these and
    the optimizer's; where a row says nothing, as its software measures. Raises UnsupportedError on
    any other `timed=`.
    """
    said = row.assumption("timed") or timed_in(row.software)
    if said is None:
        return 1.0
    if said not in _BESIDE:
        raise UnsupportedError(
            f"`timed={said}` is no part of an iteration; `timed=step` leaves out what is done "
            "between iterations, `timed=passes` the optimizer, too"
        )
    if forecast.iteration_time <= 0:
        return 1.0
    beside = sum(forecast.breakdown()[part] for part in _BESIDE[said])
    return 1.0 - beside / forecast.iteration_time
