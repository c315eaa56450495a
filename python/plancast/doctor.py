"""Whether an installation is whole: versions, data, and a forecast against its golden value."""

from __future__ import annotations

import importlib.util
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

# Packages that plancast can do without, and what they are for.
_OPTIONAL = {
    "pandas": "tables in Python (`ranking.to_frame()`)",
    "pyarrow": "files in Parquet",
    "plotly": "pictures of `collective --plot`",
    "torch": "models from PyTorch, and `plancast profile`",
    "onnx": "models from ONNX files",
    "transformers": "models of Hugging Face built as modules",
    "huggingface_hub": "configs of models on the hub, `-m OWNER/NAME`",
}
_NEEDED = ("rich", "yaml", "numpy")
_DISTRIBUTIONS = {"yaml": "PyYAML"}
# Forecasts are the same on all processors but for the last digits of some logarithms.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Finding:
    """One check: what, whether it is well, and what was found."""

    what: str
    well: bool
    found: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def findings() -> list[Finding]:
    """All checks; one that fails keeps none from running."""
    checks: list[tuple[str, Callable[[], Finding | list[Finding]]]] = [
        ("installation", _installation),
        ("core", _core),
        ("needed packages", _needed),
        ("optional packages", _optional),
        ("models", _models),
        ("machines", _machines),
        ("profiles", _profiles),
        ("forecast", _forecast),
    ]
    found: list[Finding] = []
    for what, check in checks:
        try:
            result = check()
        except Exception as error:  # the point is to say what is broken
            result = Finding(what, False, f"{type(error).__name__}: {error}")
        found += result if isinstance(result, list) else [result]
    return found


def _installation() -> Finding:
    import plancast

    python = platform.python_version()
    where = Path(plancast.__file__).parent
    return Finding(
        "installation",
        sys.version_info >= (3, 11),
        f"plancast {plancast.__version__}, Python {python}, {platform.platform()}, in {where}",
    )


def _core() -> Finding:
    from plancast import _core as core

    return Finding("core", True, f"{core.__file__}")


def _needed() -> Finding:
    absent = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if absent:
        return Finding("needed packages", False, f"absent: {', '.join(absent)}; pip install them")
    return Finding("needed packages", True, ", ".join(map(_version, _NEEDED)))


def _optional() -> Finding:
    there = [name for name in _OPTIONAL if importlib.util.find_spec(name) is not None]
    absent = [f"{name}: {_OPTIONAL[name]}" for name in _OPTIONAL if name not in there]
    said = ", ".join(map(_version, there)) or "none"
    return Finding("optional packages", True, "; absent, ".join([said, *absent]))


def _version(name: str) -> str:
    try:
        return f"{name} {metadata.version(_DISTRIBUTIONS.get(name, name))}"
    except metadata.PackageNotFoundError:
        return name


def _models() -> Finding:
    from plancast.model import Model
    from plancast.models import presets

    names = presets.transformers()
    for name in names:
        Model.preset(name)
    nets = len(presets.names()) - len(names)
    return Finding("models", True, f"{len(names)} transformers were built; {nets} nets are there")


def _machines() -> Finding:
    from plancast import shipped
    from plancast.machine import Machine

    names = Machine.presets()
    for name in names:
        Machine.preset(name, hosts=2)
    gpus = len(shipped.gpus())
    return Finding("machines", True, f"{len(names)} machines of {gpus} GPUs were built")


def _profiles() -> Finding:
    from plancast import _core as core

    names = core.profile_names()
    for name in names:
        core.profile_description(name)
    return Finding("profiles", True, f"{len(names)} software profiles were read")


def golden() -> dict[str, Any]:
    """The forecast that is made, and what it has to be."""
    import yaml

    text = (Path(__file__).parent / "doctor.yaml").read_text(encoding="utf-8")
    fields: dict[str, Any] = yaml.safe_load(text)
    return fields


def _forecast() -> Finding:
    from plancast.machine import Machine
    from plancast.model import Model
    from plancast.planning import predict
    from plancast.session import Session

    wanted = golden()
    start = time.perf_counter()
    forecast = predict(
        Model.preset(wanted["model"]),
        Machine.open(wanted["machine"]),
        wanted["strategy"],
        batch=wanted["batch"],
        dtype=wanted["dtype"],
        profile=wanted["profile"],
        session=Session(prior=False),
    )
    took = time.perf_counter() - start
    time_off = abs(forecast.iteration_time / wanted["iteration_time_s"] - 1)
    memory_off = forecast.peak_memory - wanted["peak_memory_bytes"]
    well = time_off <= _TOLERANCE and memory_off == 0
    subject = f"{wanted['model']} on {wanted['machine']}"
    if well:
        same = f"{forecast.iteration_time:.6f} s and {forecast.peak_memory:,} bytes"
        return Finding("forecast", True, f"{subject}: {same}, as they have to be, in {took:.2f} s")
    return Finding(
        "forecast",
        False,
        f"{subject}: {forecast.iteration_time:.9f} s and {forecast.peak_memory:,} bytes, where "
        f"{wanted['iteration_time_s']:.9f} s and {wanted['peak_memory_bytes']:,} are right: the "
        "core and the Python files are of different versions, or data were changed",
    )
