"""Rates that are means over an epoch, whose last batch is smaller."""

from __future__ import annotations

import math
from collections.abc import Callable

from plancast.accuracy.validation.architecture import UnsupportedError
from plancast.accuracy.validation.rows import Row
from plancast.accuracy.validation.software import epoch_samples_in
from plancast.forecast import Forecast
from plancast.strategy import Strategy


def epoch_share(
    row: Row, strategy: Strategy, forecast: Forecast, again: Callable[[Strategy, int], Forecast]
) -> float:
    """What the row calls an iteration's time, as a multiple of the forecast's.

    Hugging Face's Trainer prints `train_samples_per_second`, the samples of a run over its time
    (trainer_utils.py, speed_metrics). A rank gets ceil(samples / ranks) of them (torch's
    DistributedSampler, which fills up), and the last batch is what is left: an iteration that
    does all of an iteration's gathers and updates for fewer samples. A global batch over that rate
    is

        batch / samples * (whole iterations * their time + that of the last)

    1 where neither `epoch_samples=N` nor the row's software says how many samples a run had.

    Args:
      row: the measured row.
      strategy: of the forecast.
      forecast: of an iteration with the row's batch.
      again: the forecast of another strategy and batch of the same job.

    Raises UnsupportedError on what is no number of samples, and where an iteration accumulates
    several micro-batches, of which a smaller last one would leave out some.
    """
    said = row.assumption("epoch_samples") or epoch_samples_in(row.software)
    if said is None:
        return 1.0
    if not said.isdecimal() or int(said) < 1:
        raise UnsupportedError(f"`epoch_samples={said}` is no number of samples, 1 or more")
    samples, batch = int(said), row.global_batch
    words = dict(word.partition("=")[::2] for word in strategy.short_form.split(","))
    ranks = int(words.get("dp", "1"))
    a_rank, last = batch // ranks, math.ceil(samples / ranks)
    if int(words.get("mb", "1")) != a_rank:
        raise UnsupportedError(
            "`epoch_samples=` is for iterations of one micro-batch: here a rank has "
            f"{a_rank} samples in micro-batches of {words.get('mb', '1')}"
        )
    whole, last = divmod(last, a_rank)
    total = whole * forecast.iteration_time
    if last:
        words["mb"] = str(last)
        smaller = ",".join(f"{key}={value}" if value else key for key, value in words.items())
        total += again(strategy.with_plan(smaller), last * ranks).iteration_time
    return total * batch / samples / forecast.iteration_time
