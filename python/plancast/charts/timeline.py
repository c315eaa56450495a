"""What runs when: streams of device classes below each other, purposes by colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast.charts.figure import PURPOSES, ROW, finish, graph_objects
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.slices import Slice

# Slices nearer to each other than this share of the whole are one bar: a pixel or so.
_PIXEL = 1 / 2000
_MOST_BARS = 60_000


def timeline(slices: Sequence[Slice]) -> Any:
    """A row for each stream of each device class.

    Raises:
      InputError: there are too many bars for a page; says what to do instead.
    """
    go = graph_objects()
    end = max((piece.end_s for piece in slices), default=0.0)
    bars = _joined(slices, end * _PIXEL)
    if len(bars) > _MOST_BARS:
        raise InputError(
            f"the timeline has {len(bars):,} bars, more than a page can show. Write it with "
            "`to_perfetto` instead, which ui.perfetto.dev opens."
        )
    figure = go.Figure()
    purposes = list(dict.fromkeys(bar[1] for bar in bars))
    for number, purpose in enumerate(purposes):
        own = [bar for bar in bars if bar[1] == purpose]
        figure.add_bar(
            y=[track for track, *_ in own],
            base=[begin for _, _, begin, _, _ in own],
            x=[stop - begin for _, _, begin, stop, _ in own],
            orientation="h",
            name=purpose,
            # Outlined, so that a message of a thousandth of the step is seen.
            marker={
                "color": _colour(purpose, number),
                "line": {"width": 0.7, "color": _colour(purpose, number)},
            },
            customdata=[what for *_, what in own],
            hovertemplate="%{y}<br>%{customdata}<br>%{base:.6f} s and %{x:.6f} s long"
            "<extra>%{fullData.name}</extra>",
        )
    tracks = _tracks(slices)
    finish(figure, "One iteration", x="seconds", rows=len(tracks))
    figure.update_layout(barmode="overlay")
    figure.update_yaxes(categoryorder="array", categoryarray=tracks)
    return figure


def _colour(purpose: str, number: int) -> str:
    return PURPOSES.get(purpose, ROW[-1 - number % 5])


def _tracks(slices: Sequence[Slice]) -> list[str]:
    """Streams of a device class together, both in the order in which they start."""
    classes: dict[str, dict[str, None]] = {}
    for piece in slices:
        classes.setdefault(piece.device_class, {})[piece.stream] = None
    return [f"{owner} {stream}" for owner, streams in classes.items() for stream in streams]


def _joined(slices: Sequence[Slice], gap: float) -> list[tuple[str, str, float, float, str]]:
    """Track, purpose, begin, end and name; neighbours of one purpose are one bar."""
    found: list[tuple[str, str, float, float, str]] = []
    last: dict[str, int] = {}
    for piece in sorted(slices, key=lambda each: each.start_s):
        track = f"{piece.device_class} {piece.stream}"
        position = last.get(track)
        if position is not None:
            _, purpose, begin, end, name = found[position]
            if purpose == piece.purpose and piece.start_s - end <= gap:
                name = name if name.endswith(" ...") or name == piece.name else f"{name} ..."
                found[position] = (track, purpose, begin, max(end, piece.end_s), name)
                continue
        last[track] = len(found)
        found.append((track, piece.purpose, piece.start_s, piece.end_s, piece.name))
    return found
