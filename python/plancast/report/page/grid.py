"""Tables of many rows, to sort and to search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plancast.report.page.frame import Page

# Rows that need no search.
_FEW = 8
SCRIPTS = ("table.js", "grids.js")


@dataclass(frozen=True)
class Column:
    """Values to sort by, and how they are shown where that differs."""

    label: str
    values: Sequence[Any]
    texts: Sequence[str] = ()


@dataclass(frozen=True)
class Grid:
    """A table that grids.js fills; the page needs `SCRIPTS`."""

    columns: Sequence[Column]
    page_size: int = 25

    def html(self, page: Page) -> str:
        """Its place."""
        grids = page.data.setdefault("grids", [])
        key = f"grid{len(grids)}"
        grids.append(
            {
                "id": key,
                "pageSize": self.page_size,
                "columns": [
                    {
                        "label": column.label,
                        "values": list(column.values),
                        "texts": list(column.texts),
                        "number": _is_number(column.values),
                    }
                    for column in self.columns
                ],
            }
        )
        place = f'<div id="{key}" class="grid"></div>'
        if len(self.columns[0].values) <= _FEW:
            return place
        return (
            f'<div class="filters"><label>search <input type="search" data-grid="{key}"></label>'
            f"</div>{place}"
        )


def _is_number(values: Sequence[Any]) -> bool:
    return any(isinstance(value, int | float) for value in values)
