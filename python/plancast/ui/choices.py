"""What is chosen on the page, and the forecast that it asks for."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from plancast.errors import InputError
from plancast.machine import Machine
from plancast.model import Model
from plancast.planning import DEFAULT_PROFILE, predict
from plancast.session import Session

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# Degrees that have sliders; every other key of a short form is typed.
SLIDERS = ("tp", "pp", "cp", "ep", "mb", "vpp")
_MOST_HOSTS = 4096
_MOST_TP = 64
_LARGEST_MB = 64


@dataclass(frozen=True)
class Choice:
    """All controls of the page."""

    model: str
    machine: str
    hosts: int
    batch: int
    seq: int | None = None
    dtype: str = "bf16"
    profile: str = DEFAULT_PROFILE
    degrees: tuple[tuple[str, int], ...] = ()
    zero: str = ""
    recompute: str = ""
    sp: bool = False
    more: str = ""

    def strategy(self) -> str:
        """The short form.

        >>> Choice("m", "c", 1, 8, degrees=(("tp", 4), ("cp", 1)), sp=True).strategy()
        'tp=4,sp'
        """
        degrees = dict(self.degrees)
        words = [f"{key}={n}" for key, n in degrees.items() if n > 1 or key in ("pp", "mb")]
        if self.sp and degrees.get("tp", 1) > 1:
            words.insert(1, "sp")
        words += [
            f"{key}={v}" for key, v in (("zero", self.zero), ("recompute", self.recompute)) if v
        ]
        return ",".join([*words, *(word for word in [self.more.strip().strip(",")] if word)])

    def command(self) -> str:
        """The command that forecasts it."""
        words = ["plancast", "predict", "-m", self.model, "-c", f"{self.machine}:{self.hosts}"]
        words += ["-s", self.strategy(), "--batch", str(self.batch)]
        if self.seq is not None:
            words += ["--seq", str(self.seq)]
        if self.dtype != "bf16":
            words += ["--dtype", self.dtype]
        if self.profile != DEFAULT_PROFILE:
            words += ["--profile", self.profile]
        return shlex.join(words)


@dataclass
class Desk:
    """Models and machines on offer, and forecasts that were made.

    Beside presets there are what the command line brought, by the words behind `-m` and `-c`:
    the page itself opens no file.
    """

    models: dict[str, Model] = field(default_factory=dict)
    machines: dict[str, Machine] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._session = Session()
        self.forecast = lru_cache(maxsize=256)(self._forecast)
        self.model = lru_cache(maxsize=16)(self._model)

    def model_names(self) -> list[str]:
        """What can be chosen, that of the command line first."""
        return [*self.models, *Model.presets()]

    def machine_names(self) -> list[str]:
        """What can be chosen, that of the command line first."""
        return [*self.machines, *Machine.presets()]

    def _model(self, name: str, seq: int | None) -> Model:
        if name in self.models:
            return self.models[name]
        if name not in Model.presets():
            raise InputError(f"no model `{name}` is on offer.")
        return Model.preset(name, seq=seq)

    def machine(self, name: str, hosts: int) -> Machine:
        """A machine of so many hosts; one from a file has its own number."""
        if name in self.machines:
            return self.machines[name]
        if name not in Machine.presets():
            raise InputError(f"no machine `{name}` is on offer.")
        if not 1 <= hosts <= _MOST_HOSTS:
            raise InputError(f"{hosts} hosts; choose 1 to {_MOST_HOSTS:,}.")
        return Machine.preset(name, hosts=hosts)

    def _forecast(self, choice: Choice) -> Forecast:
        """The forecast of a choice; raises InputError."""
        return predict(
            self.model(choice.model, choice.seq),
            self.machine(choice.machine, choice.hosts),
            choice.strategy(),
            batch=choice.batch,
            dtype=choice.dtype,
            profile=choice.profile,
            session=self._session,
        )


def steps(model: Model, machine: Machine, batch: int) -> dict[str, list[int]]:
    """The degrees that sliders stop at."""
    devices = machine.devices
    fields: Mapping[str, Any] = model.config or {}
    layers = max(1, model._core.layers)
    domain = max(1, machine.gpus_per_domain)
    heads = max(1, model._core.heads)
    per_stage = [n for n in divisors(layers) if n <= 12]
    most = min(_MOST_TP, max(domain, 8))
    return {
        "tp": [n for n in divisors(devices) if n <= most and heads % n == 0],
        "pp": [n for n in divisors(devices) if n <= layers] or [1],
        "cp": [n for n in divisors(devices) if n <= 64] if model.seq > 0 else [1],
        "ep": divisors(int(fields.get("experts") or 1)),
        "mb": [n for n in divisors(batch) if n <= _LARGEST_MB],
        "vpp": per_stage,
    }  # fmt: skip


def divisors(number: int) -> list[int]:
    """Ascending.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    low = [n for n in range(1, int(number**0.5) + 1) if number % n == 0]
    return sorted({*low, *(number // n for n in low)})


def nearest_step(offered: list[int], wanted: int) -> int:
    """The position of a degree, or of the next smaller one.

    >>> nearest_step([1, 2, 4, 8], 6)
    2
    """
    return max((at for at, step in enumerate(offered) if step <= wanted), default=0)


def read_strategy(text: str) -> dict[str, Any]:
    """The parts of a short form that have controls, and the rest as `more`.

    >>> read_strategy("tp=8,sp,pp=2,mb=1,attn=flash")
    {'degrees': {'tp': 8, 'pp': 2, 'mb': 1}, 'sp': True, 'more': 'attn=flash'}
    """
    found: dict[str, Any] = {"degrees": {}}
    rest = []
    for word in filter(None, (one.strip() for one in text.split(","))):
        key, _, value = word.partition("=")
        if key in SLIDERS and value.isdecimal():
            found["degrees"][key] = int(value)
        elif key in ("zero", "recompute"):
            found[key] = value
        elif key == "sp" and value in ("", "0", "1"):
            found["sp"] = value != "0"
        elif key != "dp":  # follows from the others
            rest.append(word)
    return {**found, **({"more": ",".join(rest)} if rest else {})}
