"""What failures and checkpoints do to a run, with what it stands on."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from plancast.training.checkpoints import CheckpointCost, Checkpoints
from plancast.training.failures import Failures
from plancast.training.goodput import Costs, Goodput, daly, young


@dataclass(frozen=True)
class Reliability:
    """Failures and checkpoints of a run: their costs, and the shares of time that they leave."""

    failures: Failures | None
    checkpoints: Checkpoints
    cost: CheckpointCost
    costs: Costs
    shares: Goodput
    sources: tuple[str, ...]

    @property
    def useful(self) -> float:
        """The share of time that is useful: goodput, effective training time."""
        return self.shares.useful

    @property
    def spares(self) -> int:
        """Hosts that stand by."""
        return 0 if self.failures is None or self.failures.spares is None else self.failures.spares

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; times in seconds."""
        finite = not self.costs.never_fails
        return {
            "useful_share": self.shares.useful,
            "shares": {
                name: share for name, share in asdict(self.shares).items() if name != "interval_s"
            },
            "mtbf_s": self.costs.mtbf if finite else None,
            "restart_s": self.costs.restart,
            "checkpoint_interval_s": self.shares.interval_s,
            "young_interval_s": young(self.costs) if finite else None,
            "daly_interval_s": daly(self.costs) if finite else None,
            "checkpoint_bytes": self.cost.bytes,
            "checkpoint_stall_s": self.cost.stall_s,
            "checkpoint_lag_s": self.cost.lag_s,
            "checkpoint_load_s": self.cost.load_s,
            "spare_hosts": self.spares,
            "sources": list(self.sources),
        }

    def failures_in(self, wall_s: float) -> float:
        """How many interruptions to expect in a time, seconds, without those while waiting."""
        if math.isinf(self.costs.mtbf):
            return 0.0
        return wall_s * (1 - self.shares.waiting) / self.costs.mtbf
