"""Records as CSV files, in the columns that `plancast records ingest` reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from plancast import files
from plancast.errors import InputError
from plancast.profiling.images import images_of
from plancast.records.kernel import Kernel
from plancast.records.store import Record

_GEMM_LAYOUTS = {"forward": "TN", "dgrad": "NN", "wgrad": "NT", "wgrad+fp32": "NT+accum"}
_CONV_PHASES = {"forward": "fwd", "dgrad": "bwd_data", "wgrad": "bwd_weight"}
_COLUMNS = {
    "gemm.csv": "gpu,m,n,k,batch,dtype,layout,time_us,tflops,time_us_min,time_us_max,n_meas,op,"
    "software,timing,thinned,source,date",
    "attention.csv": "gpu,impl,phase,batch,q_len,kv_len,heads,kv_heads,head_dim,head_dim_v,dtype,"
    "kv_dtype,causal,window,time_us,time_us_min,time_us_max,n_meas,timing,thinned,source,date",
    "conv.csv": "gpu,phase,batch,in_h,in_w,in_c,out_c,kh,kw,stride,out_h,out_w,dtype,layout,"
    "time_us,time_us_min,time_us_max,n_meas,software,timing,thinned,source,date",
    "elementwise.csv": "gpu,op,phase,elements,bytes_read,bytes_written,launches,dtype,time_us,"
    "time_us_min,time_us_max,n_meas,software,timing,thinned,source,date",
}


def write_tables(records: Iterable[Record], folder: Path) -> list[Path]:
    """Writes the files of a folder that have rows; gives their paths."""
    rows: dict[str, list[dict[str, object]]] = {}
    for record in records:
        name, fields = _row(record.kernel)
        for sample in record.samples:
            software = f"{record.library} {record.version}".strip()
            rows.setdefault(name, []).append(
                {
                    "gpu": record.gpu,
                    **fields,
                    "dtype": record.kernel.dtype,
                    "time_us": repr(sample.seconds * 1e6),
                    "time_us_min": repr(sample.seconds_min * 1e6),
                    "time_us_max": repr(sample.seconds_max * 1e6),
                    "n_meas": sample.repetitions,
                    "software": software,
                    "impl": software,
                    "timing": sample.timing,
                    "thinned": 0,
                    "source": sample.source,
                    "date": sample.date,
                }
            )
    texts: dict[Path, str] = {}
    for name, lines in rows.items():
        text = io.StringIO()
        writer = csv.DictWriter(
            text, _COLUMNS[name].split(","), extrasaction="ignore", lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(lines)
        texts[folder / name] = text.getvalue()
    with files.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    files.write_set(texts)
    return list(texts)


def _row(kernel: Kernel) -> tuple[str, dict[str, object]]:
    sizes = kernel.sizes
    family, _, rule = kernel.op.partition("/")
    if family == "gemm":
        return "gemm.csv", {**sizes, "layout": _GEMM_LAYOUTS[kernel.layout], "op": "linear"}
    if family == "attention":
        return "attention.csv", {
            **sizes,
            "phase": "train_bwd" if "backward" in kernel.layout else "train_fwd",
            "q_len": sizes["q"],
            "kv_len": sizes["kv"],
            "head_dim": sizes["dim"],
            "head_dim_v": sizes["dim_v"],
            "causal": int("causal" in kernel.layout),
            "window": 0,
        }
    if family == "convolution":
        which, _, layout = kernel.layout.partition(" ")
        images = images_of(kernel)
        if images is None:
            raise InputError(f"no images make the product of `{kernel}`.")
        fields = {
            "phase": _CONV_PHASES[which],
            "layout": layout,
            "batch": images.batch,
            "in_c": images.in_channels,
            "out_c": images.out_channels,
            "stride": images.stride,
        }
        pairs = {"in": images.in_size, "out": images.out_size}
        fields |= {f"{name}_h": pair[0] for name, pair in pairs.items()}
        fields |= {f"{name}_w": pair[1] for name, pair in pairs.items()}
        return "conv.csv", {**fields, "kh": images.window[0], "kw": images.window[1]}
    return "elementwise.csv", {
        "op": rule,
        "phase": "optimizer" if family == "optimizer" else "fwd",
        "elements": sizes["write"],
        "bytes_read": sizes["read"],
        "bytes_written": sizes["write"],
        "launches": sizes["launches"],
    }
