"""Machines that could train a model: days against dollars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plancast.charts.figure import drawn
from plancast.report.page.figures import sizing_figure

if TYPE_CHECKING:
    from plancast.training.sizing_result import Sizing


def sizes(sizing: Sizing) -> Any:
    """A point for each machine with a price, its intervals, and what was asked for."""
    return drawn(sizing_figure(sizing), "Machines for the run")
