"""What runs when: streams of device classes below each other, purposes by colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plancast.charts.figure import drawn, graph_objects
from plancast.errors import InputError
from plancast.report.page.colours import PURPOSES, ROW, plain
from plancast.report.page.figures import height_of

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
    graph_objects()  # says what to install, before any work
    end = max((piece.end_s for piece in slices), default=0.0)
    bars = _joined(slices, end * _PIXEL)
    if len(bars) > _MOST_BARS:
        raise InputError(
            f"the timeline has {len(bars):,} bars, more than a page can show. Write it with "
            "`to_perfetto` instead, which ui.perfetto.dev opens."
        )
    data: list[dict[str, Any]] = []
    for number, purpose in enumerate(dict.fromkeys(bar[1] for bar in bars)):
        own = [bar for bar in bars if bar[1] == purpose]
        fill = PURPOSES.get(purpose, ROW[-1 - number % 5])
        data.append(
            {
                "type": "bar", "orientation": "h", "name": plain(purpose),
                "y": [track for track, *_ in own],
                "base": [begin for _, _, begin, _, _ in own],
                "x": [stop - begin for _, _, begin, stop, _ in own],
                # Outlined, so that a message of a thousandth of the step is seen.
                "marker": {"color": fill, "line": {"width": 0.7, "color": fill}},
                "customdata": [what for *_, what in own],
                "hovertemplate": "%{y}<br>%{customdata}<br>%{base:.6f} s and %{x:.6f} s long"
                "<extra>%{fullData.name}</extra>",
            }
        )  # fmt: skip
    tracks = _tracks(slices)
    layout = {
        "height": height_of(len(tracks)),
        "barmode": "overlay",
        "xaxis": {"title": {"text": "seconds"}, "automargin": True},
        "yaxis": {
            "autorange": "reversed", "automargin": True, "type": "category",
            "categoryorder": "array", "categoryarray": tracks,
        },
    }  # fmt: skip
    return drawn({"data": data, "layout": layout}, "One iteration")


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
