"""Tables of a framework's settings: what each is called, and whether it matters.

A table is YAML with three parts. `facts` are the settings that plans know: a name of
ours, the kind of value, what the framework does without it (`default`), and the keys
that say it, the one that is written first, older names behind. `unsupported` are
settings that matter and that a plan cannot say, with the values that do no harm.
`models` and `shipped` are what the framework calls models.
`notes` are patterns of settings that make no difference to a forecast.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from plancast.cached import cached_property
from plancast.errors import InputError
from plancast.frameworks import values

# How alike a key that the framework does not have and one of its keys must be.
_ALIKE = 0.9
_HARMLESS: tuple[Any, ...] = (None, False, "", [], {})


@dataclass(frozen=True)
class Row:
    """One setting that plans know."""

    name: str
    kind: str
    keys: tuple[str, ...]
    default: Any = None
    words: tuple[str, ...] = ()
    dest: str = ""  # in a namespace, where it is not the flag's name
    inverted: bool = False  # the namespace says the opposite of the flag

    def value(self, value: Any, key: str, what: str, *, text: bool) -> Any:
        """The value as its kind has it; `text` if numbers may be written as words."""
        return values.read(self.kind, self.words, value, f"{what}: `{key}`", text=text)


@dataclass
class Facts:
    """What a document says, by names of the table's rows."""

    table: Table
    said: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)
    auto: set[str] = field(default_factory=set)  # left to the launcher

    def __getitem__(self, name: str) -> Any:
        return self.said.get(name, self.table.rows[name].default)

    def __contains__(self, name: str) -> bool:
        return name in self.said

    def get(self, name: str, default: Any = None) -> Any:
        """What the document says, without the framework's default."""
        return self.said.get(name, default)

    def key(self, name: str) -> str:
        """How the document calls a fact, for notes and errors."""
        return f"`{self.keys.get(name, self.table.rows[name].keys[0])}`"

    def note(self, text: str) -> None:
        """Adds a note."""
        self.notes.append(text)

    def cannot_say(self, text: str) -> None:
        """Adds something that matters and that a plan cannot say."""
        self.unsupported.append(text)


@dataclass(frozen=True)
class Table:
    """The settings of one framework."""

    rows: dict[str, Row]
    unsupported: dict[str, dict[str, Any]]
    notes: tuple[str, ...]
    # Of frameworks that name models: presets and what they are called there, and the names
    # that the framework has.
    models: Mapping[str, list[str]] = field(default_factory=dict)
    shipped: tuple[str, ...] = ()

    @cached_property
    def by_key(self) -> dict[str, Row]:
        """The rows by each of their keys."""
        return {key: row for row in self.rows.values() for key in row.keys}

    def read(self, document: Mapping[str, Any], what: str, *, text: bool = False) -> Facts:
        """The facts of a document of dotted keys; `what` names it in errors."""
        facts, by_key = Facts(self), self.by_key
        idle: list[str] = []
        for key, value in document.items():
            if key in by_key:
                self._read_fact(facts, by_key[key], key, value, what, text=text)
            elif key in self.unsupported:
                self._read_unsupported(facts, key, value, idle)
            elif any(fnmatch.fnmatchcase(key, pattern) for pattern in self.notes):
                idle.append(key)
            else:
                self._refuse_near(key, what)
                facts.note(f"`{key}` is not known to Plancast; it is taken to make no difference.")
        if idle:
            listed = ", ".join(f"`{key}`" for key in idle)
            facts.note(f"makes no difference to a forecast: {listed}.")
        return facts

    def write(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Dotted keys and their values, in the order of the table."""
        unknown = set(said) - set(self.rows)
        assert not unknown, unknown
        return {
            row.keys[0]: said[name] for name, row in self.rows.items() if said.get(name) is not None
        }

    def _read_fact(
        self, facts: Facts, row: Row, key: str, value: Any, what: str, *, text: bool
    ) -> None:
        if value is None:
            return
        if value == "auto" and "auto" not in row.words:
            facts.note(f"`{key}` is `auto`: left open.")
            facts.auto.add(row.name)
            return
        read = row.value(value, key, what, text=text)
        if row.name in facts.said and facts.said[row.name] != read:
            raise InputError(
                f"{what}: `{facts.keys[row.name]}` and `{key}` mean the same and say "
                f"`{facts.said[row.name]}` and `{read}`. Keep one."
            )
        facts.said[row.name], facts.keys[row.name] = read, key

    def _read_unsupported(self, facts: Facts, key: str, value: Any, idle: list[str]) -> None:
        row = self.unsupported[key]
        harmless = [*_HARMLESS, *row.get("harmless", ())]
        if any(type(value) is type(other) and value == other for other in harmless):
            idle.append(key)
        else:
            facts.cannot_say(f"`{key}` = `{_brief(value)}`: {row['means']}.")

    def _refuse_near(self, key: str, what: str) -> None:
        known = [*self.by_key, *self.unsupported]
        near = difflib.get_close_matches(key, known, 1, _ALIKE)
        if near:
            raise InputError(f"{what} has an unknown `{key}`. Did you mean `{near[0]}`?")


@cache
def load(name: str) -> Table:
    """The table of `tables/NAME.yaml`."""
    import yaml

    path = Path(__file__).parent / "tables" / f"{name}.yaml"
    document = yaml.load(
        path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    rows = {
        fact: Row(
            fact,
            fields["kind"],
            tuple(fields["keys"]),
            fields.get("default"),
            tuple(fields.get("words", ())),
            fields.get("dest", ""),
            fields.get("inverted", False),
        )
        for fact, fields in document["facts"].items()
    }
    return Table(
        rows,
        document.get("unsupported", {}),
        tuple(document.get("notes", ())),
        document.get("models", {}),
        tuple(document.get("shipped", ())),
    )


def flatten(document: Mapping[str, Any], whole: Iterable[str] = ()) -> dict[str, Any]:
    """Dotted keys of a nested document; mappings under keys of `whole` are not opened.

    >>> flatten({"zero": {"stage": 3}, "steps": 1})
    {'zero.stage': 3, 'steps': 1}
    """
    flat: dict[str, Any] = {}
    kept = set(whole)

    def walk(mapping: Mapping[str, Any], prefix: str) -> None:
        for name, value in mapping.items():
            key = f"{prefix}{name}"
            if isinstance(value, Mapping) and value and key not in kept:
                walk(value, f"{key}.")
            else:
                flat[key] = value

    walk(document, "")
    return flat


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `flatten`.

    >>> nest({"zero.stage": 3, "zero.overlap": True})
    {'zero': {'stage': 3, 'overlap': True}}
    """
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        *sections, last = key.split(".")
        inner = nested
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[last] = value
    return nested


def _brief(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
