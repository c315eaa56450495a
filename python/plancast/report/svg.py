"""What pictures of pages share: inline SVG that loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_NAMESPACE = 'xmlns="http://www.w3.org/2000/svg" '


def opening(width: int, height: int, *, standalone: bool) -> list[str]:
    """The element, which `</svg>` ends, and a white ground; `standalone`: for a file of its own."""
    return [
        f'<svg {_NAMESPACE if standalone else ""}viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]


def band(
    at: Sequence[float],
    top: Sequence[float],
    base: Sequence[float],
    axes: tuple[Callable[[float], float], Callable[[float], float]],
    fill: str,
    title: str,
) -> str:
    """The area between two lines over `at`; `axes` say where x and y are."""
    x_of, y_of = axes
    outline = [f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in zip(at, top, strict=True)]
    outline += [
        f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in zip(reversed(at), reversed(base), strict=True)
    ]
    points = " ".join(outline)
    return f'<polygon points="{points}" fill="{fill}"><title>{title}</title></polygon>'
