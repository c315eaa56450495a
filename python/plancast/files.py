"""Reading and writing the user's files, with errors that name the place."""

from __future__ import annotations

import importlib.util
import io
import os
import os.path
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from plancast import _core, documents, output
from plancast.errors import InputError

if TYPE_CHECKING:
    from gzip import GzipFile

_SUFFIXES = (".yaml", ".yml", ".json")
# Far more than a table or a log has; what is larger is cut, or is no text.
MOST_TEXT = 64 << 20
# Of what people write: a strategy or a configuration; its values take some 20 times as much.
_MOST_DOCUMENT = 8 << 20
_PART = 1 << 20


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
    except InputError:
        raise
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


@contextmanager
def opened(path: str | Path, *, most: int) -> Iterator[BinaryIO]:
    """A user's file, open for reading: one of a disk, of at most `most` bytes.

    Every file that somebody names is opened here, so that a device without end, a pipe that
    nobody writes to and a file larger than memory are refused before they are read.

    Raises:
      InputError: it is not there, is no regular file, or is larger.
    """
    with _reading(path):
        # Without O_NONBLOCK, opening a pipe waits for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            _check_regular(path, os.fstat(descriptor), most)
        except BaseException:
            os.close(descriptor)
            raise
    with open(descriptor, "rb") as file:
        yield file


def _check_regular(path: str | Path, found: os.stat_result, most: int) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError
    if not stat.S_ISREG(found.st_mode):
        kinds = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
        kind = next((name for is_one, name in kinds if is_one(found.st_mode)), "a device")
        raise InputError(
            f"`{path}` is {kind}; only regular files are read. Write what it gives to a file, and "
            "name that."
        )
    if found.st_size > most:
        raise _too_large(path, most)


def read_text(path: str | Path, *, most: int = MOST_TEXT) -> str:
    """The contents of a text file of at most `most` bytes."""
    with opened(path, most=most) as file, _reading(path):
        data = io.BytesIO(_all_of(file, path, most))
        return io.TextIOWrapper(data, encoding="utf-8-sig").read()


def read_bytes(path: str | Path, *, most: int = 1 << 30) -> bytes:
    """The contents of a file of at most `most` bytes; what gzip compressed is unpacked."""
    import gzip

    with opened(path, most=most) as file, _reading(path):
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        return _all_of(gzip.GzipFile(fileobj=file) if packed else file, path, most)


def _all_of(file: IO[bytes] | GzipFile, path: str | Path, most: int) -> bytes:
    # What unpacks, grows or says no size (`/proc`) can hold more than it said. In parts, for
    # `read` takes the memory of all that it is asked for.
    data = bytearray()
    while part := file.read(_PART):
        data += part
        if len(data) > most:
            raise _too_large(path, most)
    return bytes(data)


def _too_large(path: str | Path, most: int) -> InputError:
    size = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
    return InputError(f"`{path}` holds more than {size}, the most that is read of such a file.")


def read_mapping(path: str | Path) -> dict[str, Any]:
    """A YAML or JSON file that holds one mapping."""
    text = read_text(path, most=_MOST_DOCUMENT)
    parse = documents.parse_json if str(path).endswith(".json") else documents.parse_yaml
    return documents.mapping(parse(text, f"`{path}`"), f"`{path}`")


def beside(folder: str | Path, name: str, what: str) -> Path:
    """The path of a file that another file names: in the folder of that one, or below.

    >>> beside("plans", "tables/v.csv", "`schedule`").as_posix()
    'plans/tables/v.csv'

    Raises:
      InputError: it is elsewhere. What a file says leads to no other folder.
    """
    if os.path.isabs(name) or ".." in Path(name).parts:
        raise InputError(
            f"{what} is `{name}`, outside of the folder of the file that says so (`{folder}`). "
            "Put it there."
        )
    return Path(folder) / name


def is_folder(path: str | Path) -> bool:
    """Whether there is such a folder. Unlike Path.is_dir, no name is too long to be asked for."""
    return os.path.isdir(path)


def is_file(path: str | Path) -> bool:
    """Whether there is such a regular file, likewise."""
    return os.path.isfile(path)


def is_there(path: str | Path) -> bool:
    """Whether there is such a file or folder, likewise."""
    return os.path.exists(path)


def check_writable(path: str | Path | None, suffixes: tuple[str, ...] = ()) -> None:
    """Raises InputError for a result file that cannot be made, before any work is done."""
    if path is None:
        return
    if not str(path):
        raise InputError("a result file has an empty name; give it one.")
    if suffixes and not str(path).endswith(suffixes) and not output.is_special(path):
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


def check_table(path: str | Path | None) -> None:
    """Raises InputError where `write_table` could not write, before any work is done."""
    check_writable(path, (".csv", ".csv.gz", ".parquet"))
    if str(path).endswith(".parquet") and importlib.util.find_spec("pyarrow") is None:
        raise InputError(
            f"`{path}`: Parquet needs pyarrow. Run `pip install pyarrow`, or write `.csv`."
        )


def write_table(
    path: str | Path, columns: Sequence[str], records: Sequence[Mapping[str, Any]]
) -> None:
    """Writes records as `.csv`, `.csv.gz` or `.parquet`."""
    check_table(path)
    if str(path).endswith(".parquet"):
        import pandas as pd

        table = io.BytesIO()
        pd.DataFrame.from_records(records, columns=columns).to_parquet(table)
        write_bytes(path, table.getvalue())
        return
    import csv

    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    write_text(path, text.getvalue())


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
    near = _core.nearest(Path(path).name, names, 1)
    if near:
        return f" Did you mean `{folder / near[0]}`?"
    if not names:
        return ""
    shown = ", ".join(f"`{name}`" for name in names[:8])
    return f" `{folder}` holds {shown}{' and more' if len(names) > 8 else ''}."
