"""What notebooks do with results: tables as HTML, rows as a pandas frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType


class Shown:
    """What has tables (`__rich__`), and so HTML for notebooks."""

    __slots__ = ()

    def __rich__(self) -> RenderableType:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        from plancast.report.html import to_html

        return to_html(self.__rich__())


class Tabular:
    """What has flat rows, and so a pandas frame."""

    __slots__ = ()

    def records(self) -> list[dict[str, Any]]:
        """Flat rows, units in the names."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """The rows of `records` as a pandas frame."""
        import pandas as pd

        return pd.DataFrame.from_records(self.records())
