"""Machines of measured rows: presets, or figures from a CSV file."""

from __future__ import annotations

import re
from pathlib import Path

from plancast.accuracy.table import Cells, Table
from plancast.errors import InputError
from plancast.machine import Machine

_SIZE = re.compile(r"(?P<preset>[^:]+)(:(?P<hosts>\d{1,9})(x(?P<gpus>\d{1,9}))?)?")
# Column of the CSV -> field of the GPU or machine, unit for unit.
_GPU_FIELDS = {
    "sms": "sms",
    "hbm_gb": "memory_gb",
    "hbm_gb_per_s": "memory_gb_per_s",
    "l2_mb": "l2_mb",
    "fp32_tflops": "fp32_tflops",
    "tf32_tflops": "tf32_tflops",
    "fp16_tflops": "fp16_tflops",
    "bf16_tflops": "bf16_tflops",
    "fp8_tflops": "fp8_tflops",
    "fp4_tflops": "fp4_tflops",
}
_MACHINE_FIELDS = {
    "gpus_per_host": "gpus_per_host",
    "intra_gb_per_s_per_dir": "intra_gb_per_s",
    "nics_per_host": "nics_per_host",
    "nic_gbit_per_s": "nic_gbit_per_s",
}
_WORD_FIELDS = ("intra_link", "topology", "fabric")
_WHOLE = frozenset(("sms", "gpus_per_host", "nics_per_host"))


class MachineBook:
    """Machines by the text a row names them with; each is made once.

    An entry is the reason why there is no machine where the text names none.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._made: dict[tuple[str, int | None], Machine | str] = {}
        self._figures: dict[str, Cells] = {}
        if path is not None:
            table = Table(path)
            for column in ("preset", "gpu"):
                if column not in table.columns:
                    raise InputError(
                        f"`{path}` has no column `{column}`; it must describe machines."
                    )
            self._figures = {cells.text("preset"): cells for cells in table.rows()}

    def find(self, text: str, segment: int | None = None) -> Machine | str:
        """The machine `PRESET:HOSTS` or `PRESET:HOSTSxGPUS`, or why there is none.

        `segment`: hosts of an NVLink domain that the job was placed on together, where that is
        known.
        """
        key = (text, segment)
        if key not in self._made:
            try:
                made = self._make(text)
                if segment is not None:
                    made = Machine.from_dict({**made.to_dict(), "segment": segment}, what=text)
                self._made[key] = made
            except InputError as error:
                self._made[key] = str(error)
        return self._made[key]

    def _make(self, text: str) -> Machine:
        match = _SIZE.fullmatch(text)
        figures = self._figures.get(match["preset"]) if match else None
        if match is None or figures is None:
            return Machine.preset(text)
        fields: dict[str, object] = {
            "name": match["preset"],
            "hosts": int(match["hosts"] or 1),
            "source": figures.text("notes"),
        }
        gpu: dict[str, object] = {"name": figures.text("gpu")}
        for columns, target in ((_GPU_FIELDS, gpu), (_MACHINE_FIELDS, fields)):
            for column, name in columns.items():
                value = figures.whole(column) if name in _WHOLE else figures.number(column)
                if value is not None:
                    target[name] = value
        for word in _WORD_FIELDS:
            if figures.text(word):
                fields[word] = figures.text(word)
        if match["gpus"]:
            fields["gpus_per_host"] = int(match["gpus"])
        fields["gpu"] = gpu
        return Machine.from_dict(fields, what=f"machine `{match['preset']}`")
