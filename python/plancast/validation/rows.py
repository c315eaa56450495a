"""Measured rows: one strict CSV row a training run."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plancast import files
from plancast.errors import InputError

# Without these columns a file holds something else than runs of plans.
_NEEDED = ("row_id", "source", "model", "machine", "strategy", "global_batch", "seq_len")
_COLLECTIVE = "collective"
_LAYER_TIME = "layer_forward_ms"
_PRESET = "preset"


@dataclass(frozen=True)
class Row:
    """One measured run; None where the source does not say."""

    row_id: str
    source: str
    group: str
    model: str
    layers: int | None
    hidden: int | None
    heads: int | None
    kv_heads: int | None
    head_dim: int | None
    ffn_hidden: int | None
    vocab: int | None
    mlp: str
    norm: str
    position: str
    tied_embeddings: bool
    experts: int | None
    seq_len: int | None
    machine: str
    strategy: str
    global_batch: int
    dtype: str
    software: str
    iter_time_s: float | None
    tflops_per_gpu: float | None
    mfu: float | None
    flops_formula: str
    peak_mem_gb: float | None
    oom: bool
    assumptions: tuple[str, ...]

    def assumption(self, key: str) -> str | None:
        """The value of a `key=value` token, if there."""
        for token in self.assumptions:
            name, equals, value = token.partition("=")
            if name == key and equals:
                return value
        return None

    def strategy_keys(self) -> dict[str, str]:
        """The strategy's keys as written; a switch has the value ``."""
        keys: dict[str, str] = {}
        for item in filter(None, self.strategy.split(",")):
            key, _, value = item.partition("=")
            keys[key.strip()] = value.strip()
        return keys


@dataclass(frozen=True)
class Skipped:
    """A file that holds no measured runs, and what it holds instead."""

    path: str
    reason: str


def read_rows(paths: Sequence[str | Path]) -> tuple[list[Row], list[Skipped]]:
    """Reads CSV files and the CSV files of folders, in the order of their names."""
    rows: list[Row] = []
    skipped: list[Skipped] = []
    for path in _expand(paths):
        reason = _read_file(path, rows)
        if reason:
            skipped.append(Skipped(str(path), reason))
    seen: dict[str, None] = {}
    for row in rows:
        if row.row_id in seen:
            raise InputError(f"row id `{row.row_id}` occurs twice. Ids must be unique.")
        seen[row.row_id] = None
    if not rows:
        detail = "; ".join(f"`{s.path}`: {s.reason}" for s in skipped)
        raise InputError(f"no measured runs in {', '.join(f'`{p}`' for p in paths)}. {detail}")
    return rows, skipped


def _expand(paths: Sequence[str | Path]) -> list[Path]:
    out: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            found = sorted(path.glob("*.csv"))
            if not found:
                raise InputError(f"there is no .csv file in `{path}`.")
            out += found
        else:
            out.append(path)
    return out


def _read_file(path: Path, rows: list[Row]) -> str:
    """Adds the rows of one file; or says why it has none."""
    reader = csv.DictReader(io.StringIO(files.read_text(path)))
    columns = set(reader.fieldnames or ())
    if _COLLECTIVE in columns:
        return "measurements of collectives, not of training runs"
    if _LAYER_TIME in columns:
        return "times of single layers, not of training runs"
    if _PRESET in columns and "row_id" not in columns:
        return "descriptions of machines"
    missing = [column for column in _NEEDED if column not in columns]
    if missing:
        return f"no column {', '.join(f'`{column}`' for column in missing)}"
    for fields in reader:
        rows.append(_parse(fields, f"`{path}`:{reader.line_num}"))
    return ""


def _parse(fields: dict[str, str | None], place: str) -> Row:
    def text(name: str) -> str:
        return (fields.get(name) or "").strip()

    def whole(name: str) -> int | None:
        value = number(name)
        if value is None:
            return None
        if value != int(value) or value < 0:
            raise InputError(f"{place}: `{name}` is `{text(name)}`; it must be a whole number.")
        return int(value)

    def number(name: str) -> float | None:
        if not text(name):
            return None
        try:
            return float(text(name))
        except ValueError:
            raise InputError(f"{place}: `{name}` is `{text(name)}`; it must be a number.") from None

    batch = whole("global_batch")
    if not batch:
        raise InputError(f"{place}: `global_batch` is missing; it is samples per step.")
    return Row(
        row_id=text("row_id"),
        source=text("source"),
        group=text("group"),
        model=text("model"),
        layers=whole("layers"),
        hidden=whole("hidden"),
        heads=whole("heads"),
        kv_heads=whole("kv_heads"),
        head_dim=whole("head_dim"),
        ffn_hidden=whole("ffn_hidden"),
        vocab=whole("vocab"),
        mlp=text("mlp"),
        norm=text("norm"),
        position=text("position"),
        tied_embeddings=text("tied_embeddings") == "1",
        experts=whole("experts"),
        seq_len=whole("seq_len"),
        machine=text("machine"),
        strategy=text("strategy"),
        global_batch=batch,
        dtype=text("dtype") or "bf16",
        software=text("software"),
        iter_time_s=number("iter_time_s"),
        tflops_per_gpu=number("tflops_per_gpu"),
        mfu=number("mfu"),
        flops_formula=text("flops_formula"),
        peak_mem_gb=number("peak_mem_gb"),
        oom=text("oom") == "1",
        assumptions=tuple(
            token.strip() for token in text("assumptions").split(";") if token.strip()
        ),
    )
