"""Reading the user's files, with errors that name the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plancast.errors import InputError

_SUFFIXES = (".yaml", ".yml", ".json")


def looks_like_file(text: str) -> bool:
    """Whether an option's text means a file rather than a preset's name.

    >>> looks_like_file("model.yaml"), looks_like_file("dgx-h100:2")
    (True, False)
    """
    return text.endswith(_SUFFIXES) or "/" in text or Path(text).is_file()


def read_text(path: str | Path) -> str:
    """The contents of a text file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"there is no file `{path}`.{_siblings(path)}") from None
    except IsADirectoryError:
        raise InputError(
            f"`{path}` is a folder; give a file in it.{_siblings(Path(path) / 'x')}"
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(f"`{path}` is not text: byte {error.start} is not UTF-8.") from None
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error.strerror}.") from None


def read_mapping(path: str | Path) -> dict[str, Any]:
    """A YAML or JSON file that holds one mapping."""
    text = read_text(path)
    value = _parse_json(text, path) if str(path).endswith(".json") else _parse_yaml(text, path)
    if not isinstance(value, dict):
        kind = "empty" if value is None else f"a {type(value).__name__}"
        raise InputError(f"`{path}` must hold `key: value` pairs and is {kind}.")
    return value


def write_text(path: str | Path, text: str) -> None:
    """Writes a result file; a path that ends in `.gz` is compressed."""
    try:
        if str(path).endswith(".gz"):
            import gzip

            with gzip.open(path, "wt", encoding="utf-8") as file:
                file.write(text)
        else:
            Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"`{path}` cannot be written: {error.strerror}.") from None


def _parse_json(text: str, path: str | Path) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"`{path}`:{error.lineno}:{error.colno} is not JSON: {error.msg}."
        ) from None


def _parse_yaml(text: str, path: str | Path) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "malformed"
        raise InputError(f"`{path}`{place} is not YAML: {problem}.") from None


def _siblings(path: str | Path) -> str:
    folder = Path(path).parent
    if not folder.is_dir():
        return f" There is no folder `{folder}` either."
    names = sorted(p.name for p in folder.iterdir() if p.suffix in _SUFFIXES)
    if not names:
        return ""
    shown = ", ".join(f"`{name}`" for name in names[:8])
    return f" `{folder}` holds {shown}{' and more' if len(names) > 8 else ''}."
