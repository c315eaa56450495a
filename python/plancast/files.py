"""Reading and writing the user's files, with errors that name the place."""

from __future__ import annotations

import difflib
import os
import os.path
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plancast import documents, output
from plancast.errors import InputError

_SUFFIXES = (".yaml", ".yml", ".json")


def looks_like_file(text: str) -> bool:
    """Whether an option's text means a file rather than a preset's name.

    >>> looks_like_file("model.yaml"), looks_like_file("dgx-h100:2")
    (True, False)
    """
    return text.endswith((*_SUFFIXES, ".pt2", ".onnx")) or "/" in text or os.path.isfile(text)


@contextmanager
def _reading(path: str | Path) -> Iterator[None]:
    """Says in words what keeps a file from being read."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"there is no file `{path}`.{_siblings(path)}") from None
    except IsADirectoryError:
        raise InputError(
            f"`{path}` is a folder; give a file in it.{_siblings(Path(path) / 'x')}"
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(f"`{path}` is not text: byte {error.start} is not UTF-8.") from None
    # ValueError: a name with a zero byte; the last two: no whole gzip.
    except (OSError, ValueError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"`{path}` cannot be read: {reason}.") from None


def read_text(path: str | Path) -> str:
    """The contents of a text file."""
    with _reading(path):
        return Path(path).read_text(encoding="utf-8-sig")


def read_bytes(path: str | Path, *, most: int = 1 << 30) -> bytes:
    """The contents of a file of at most `most` bytes; what gzip compressed is unpacked."""
    import gzip

    with _reading(path), open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        data = (gzip.GzipFile(fileobj=file) if packed else file).read(most + 1)
    if len(data) > most:
        raise InputError(f"`{path}` holds more than {most >> 20} MiB, the most that is read.")
    return data


def read_mapping(path: str | Path) -> dict[str, Any]:
    """A YAML or JSON file that holds one mapping."""
    text = read_text(path)
    parse = documents.parse_json if str(path).endswith(".json") else documents.parse_yaml
    return documents.mapping(parse(text, f"`{path}`"), f"`{path}`")


def check_writable(path: str | Path | None, suffixes: tuple[str, ...] = ()) -> None:
    """Raises InputError for a result file that cannot be made, before any work is done."""
    if path is None:
        return
    if not str(path):
        raise InputError("a result file has an empty name; give it one.")
    if suffixes and not str(path).endswith(suffixes):
        listed = ", ".join(f"`{suffix}`" for suffix in suffixes)
        raise InputError(f"`{path}` cannot be written: its name must end in one of {listed}.")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise InputError(f"`{path}` cannot be written: there is no folder `{folder}`.")
    if os.path.isdir(path):
        raise InputError(f"`{path}` cannot be written: it is a folder; name a file in it.")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise InputError(f"`{path}` cannot be written: permission denied.")


@contextmanager
def writing(what: str | Path) -> Iterator[None]:
    """Says in words what keeps a file, or one of the set `what`, from being written."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever reads the pipe has seen enough
    # ValueError: a name with a zero byte.
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        path = getattr(error, "filename", None) or what
        raise InputError(f"`{path}` cannot be written: {reason}.") from None


def write_text(path: str | Path, text: str) -> None:
    """Writes a result file, whole or not at all; a path that ends in `.gz` is compressed."""
    with writing(path):
        output.write_bytes(path, encoded(path, text))


def write_bytes(path: str | Path, data: bytes) -> None:
    """Writes a result file, whole or not at all."""
    with writing(path):
        output.write_bytes(path, data)


def write_set(outputs: Mapping[Path, str]) -> None:
    """Writes texts by path: all of them, or none where one cannot be written."""
    with writing(next(iter(outputs), "")), output.Outputs() as files:
        for path, text in outputs.items():
            files.write(path, encoded(path, text))


def encoded(path: str | Path, text: str) -> bytes:
    """The bytes of a text file; a path that ends in `.gz` is compressed."""
    data = text.encode("utf-8")
    if not str(path).endswith(".gz"):
        return data
    import gzip

    return gzip.compress(data, mtime=0)  # the same bytes every time


def _siblings(path: str | Path) -> str:
    folder = Path(path).parent
    if not os.path.isdir(folder):
        return f" There is no folder `{folder}` either."
    suffix = Path(path).suffix
    wanted = (*_SUFFIXES, suffix) if suffix else _SUFFIXES
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(wanted))
    except OSError:
        return ""
    near = difflib.get_close_matches(Path(path).name, names, 1)
    if near:
        return f" Did you mean `{folder / near[0]}`?"
    if not names:
        return ""
    shown = ", ".join(f"`{name}`" for name in names[:8])
    return f" `{folder}` holds {shown}{' and more' if len(names) > 8 else ''}."
