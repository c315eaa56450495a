"""Measured rows: one strict CSV row a training run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plancast import files
from plancast.accuracy.table import Cells, Table
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
    topk: int | None
    moe_ffn_hidden: int | None
    shared_experts: int | None
    dense_layers: int | None
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

    @property
    def segment(self) -> int | None:
        """The hosts of an NVLink domain that the job was placed on together, where known."""
        said = self.assumption("segment") or ""
        return int(said) if said.isdecimal() else None

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
    rows: dict[str, Row] = {}
    skipped: list[Skipped] = []
    for path in _expand(paths):
        reason = _read_file(path, rows)
        if reason:
            skipped.append(Skipped(str(path), reason))
    if not rows:
        detail = "; ".join(f"`{s.path}`: {s.reason}" for s in skipped)
        raise InputError(f"no measured runs in {', '.join(f'`{p}`' for p in paths)}. {detail}")
    return list(rows.values()), skipped


def _expand(paths: Sequence[str | Path]) -> list[Path]:
    out: list[Path] = []
    for path in map(Path, paths):
        if files.is_folder(path):
            found = sorted(path.glob("*.csv"))
            if not found:
                raise InputError(f"there is no .csv file in `{path}`.")
            out += found
        else:
            out.append(path)
    return out


def _read_file(path: Path, rows: dict[str, Row]) -> str:
    """Adds the rows of one file by their ids; or says why it has none."""
    table = Table(path)
    columns = set(table.columns)
    if _COLLECTIVE in columns:
        return "measurements of collectives, not of training runs"
    if _LAYER_TIME in columns:
        return "times of single layers, not of training runs"
    if _PRESET in columns and "row_id" not in columns:
        return "descriptions of machines"
    missing = [column for column in _NEEDED if column not in columns]
    if missing:
        return f"no column {', '.join(f'`{column}`' for column in missing)}"
    for cells in table.rows():
        row = _parse(cells)
        if row.row_id in rows:
            raise InputError(
                f"{cells.place}: row id `{row.row_id}` occurs twice. Ids must be unique."
            )
        rows[row.row_id] = row
    return ""


def _parse(cells: Cells) -> Row:
    for name in ("row_id", "source"):
        if not cells.text(name):
            raise InputError(f"{cells.place}: `{name}` is missing.")
    batch = cells.whole("global_batch")
    if not batch:
        raise InputError(f"{cells.place}: `global_batch` is missing; it is samples per step.")
    keys = [item.partition("=")[0].strip() for item in cells.text("strategy").split(",")]
    for key in keys:
        if keys.count(key) > 1:
            raise InputError(f"{cells.place}: `strategy` gives `{key}` twice. Say it once.")
    mfu = cells.positive("mfu")
    if mfu is not None and mfu > 1:
        raise InputError(
            f"{cells.place}: `mfu` is {mfu:g}; it is a share of the peak, so {mfu:g} % is "
            f"{mfu / 100:g}."
        )
    return Row(
        row_id=cells.text("row_id"),
        source=cells.text("source"),
        group=cells.text("group"),
        model=cells.text("model"),
        layers=cells.whole("layers"),
        hidden=cells.whole("hidden"),
        heads=cells.whole("heads"),
        kv_heads=cells.whole("kv_heads"),
        head_dim=cells.whole("head_dim"),
        ffn_hidden=cells.whole("ffn_hidden"),
        vocab=cells.whole("vocab"),
        mlp=cells.text("mlp"),
        norm=cells.text("norm"),
        position=cells.text("position"),
        tied_embeddings=cells.flag("tied_embeddings"),
        experts=cells.whole("experts"),
        topk=cells.whole("topk"),
        moe_ffn_hidden=cells.whole("moe_ffn_hidden"),
        shared_experts=cells.whole("shared_experts"),
        dense_layers=cells.whole("dense_layers"),
        seq_len=cells.whole("seq_len"),
        machine=cells.text("machine"),
        strategy=cells.text("strategy"),
        global_batch=batch,
        dtype=cells.text("dtype") or "bf16",
        software=cells.text("software"),
        iter_time_s=cells.positive("iter_time_s"),
        tflops_per_gpu=cells.positive("tflops_per_gpu"),
        mfu=mfu,
        flops_formula=cells.text("flops_formula"),
        peak_mem_gb=cells.positive("peak_mem_gb"),
        oom=cells.flag("oom"),
        assumptions=tuple(
            token.strip() for token in cells.text("assumptions").split(";") if token.strip()
        ),
    )
