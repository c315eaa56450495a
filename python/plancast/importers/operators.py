"""The operators that a reader knows: some are code, the rest lines of a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from plancast.cached import cached_property

Handler = TypeVar("Handler", bound=Callable[..., Any])


class Operators(Generic[Handler]):
    """Handlers by operator name, and the document `table.yaml` beside the reader."""

    def __init__(self, folder: Path) -> None:
        self.handlers: dict[str, Handler] = {}
        self._folder = folder

    def handles(self, *names: str) -> Callable[[Handler], Handler]:
        """Registers what makes nodes of these operators."""

        def register(handler: Handler) -> Handler:
            for name in names:
                self.handlers[name] = handler
            return handler

        return register

    @cached_property
    def table(self) -> dict[str, Any]:
        """Operators that need no code."""
        import yaml

        text = (self._folder / "table.yaml").read_text(encoding="utf-8")
        tables: dict[str, Any] = yaml.safe_load(text)
        return tables
