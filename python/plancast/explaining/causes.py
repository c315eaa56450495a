"""What makes two plans differ, one cause each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cause:
    """Time that one plan takes more than another (negative: less), for one reason.

    `part` is one of the breakdown's, or `software`; `kind` a family of kernels; `why` what differs
    (`amount`, `rate`, `exposure`, `stages`, ...; `unknown`: not attributed).
    """

    part: str
    kind: str
    why: str
    picoseconds: int
    sentence: str

    @property
    def seconds(self) -> float:
        """The same in seconds."""
        return self.picoseconds / 1e12

    def named(self, mine: str, other: str) -> str:
        """The sentence with names for this plan and the other one.

        >>> Cause("bubble", "", "presence", 1, "only the other plan has a pipeline").named("B", "A")
        'only A has a pipeline'
        """
        return self.sentence.replace("the other plan", other).replace("this plan", mine)

    def to_dict(self) -> dict[str, Any]:
        """The fields of `--json`."""
        return {
            "part": self.part, "kind": self.kind, "why": self.why, "sentence": self.sentence,
            "picoseconds": self.picoseconds, "seconds": self.seconds,
        }  # fmt: skip


def leading(causes: Sequence[Cause], total_ps: int, *, most: int = 8) -> list[Cause]:
    """Those worth a line: of a twentieth of the difference, or of the largest, at least."""
    largest = max([abs(total_ps) // 4, *(abs(c.picoseconds) for c in causes)], default=0)
    return [c for c in causes if 20 * abs(c.picoseconds) >= largest][:most]
