"""How often a run is interrupted, and how it goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.machine import Machine
from plancast.training import amounts

_MOST_SPARES = 100_000


@checked
@dataclass(frozen=True, kw_only=True)
class Failures:
    """What interrupts a run.

    Args:
      gpu_hours: mean hours between interruptions by one GPU; infinite: none.
      host_hours: mean hours between interruptions by one host in any other way.
      detect: seconds until a failure is noticed, or text such as `10min`.
      restart: seconds from then until training goes on, without loading the checkpoint.
      spares: hosts that stand by and are paid for; None: the provider replaces hosts in no time.
      repair: seconds until a failed host is back.
      replaced: share of interruptions that take a host away; counts only with spares.
      source: where the rates come from.

    >>> llama = Failures.known("llama3")
    >>> round(llama.mtbf(Machine.preset("grandteton-h100-80g", hosts=2048)) / 3600, 2)
    3.09
    """

    gpu_hours: float = math.inf
    host_hours: float = math.inf
    detect: float | str | None = None
    restart: float | str | None = None
    spares: int | None = None
    repair: float | str | None = None
    replaced: float = 1.0
    source: str = "given"

    def __post_init__(self) -> None:
        for name in ("gpu_hours", "host_hours"):
            hours = getattr(self, name)
            if not hours > 0:
                raise InputError(
                    f"`{name}` is {hours:g}; give mean hours between failures, over 0."
                )
        if self.spares is not None:
            arguments.whole(self.spares, "spares", 0, _MOST_SPARES)
        if not 0 <= self.replaced <= 1:
            raise InputError(f"`replaced` is {self.replaced:g}; give a share from 0 to 1.")
        for name in ("detect", "restart", "repair"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, amounts.seconds(value, name, zero=True))

    @classmethod
    def known(cls, name: str) -> Failures:
        """Published rates, by name (`Failures.names()`)."""
        rates = _data()["rates"]
        if name not in rates:
            raise InputError(f"no failure rates `{name}`.{arguments.offer(name, list(rates))}")
        entry = rates[name]
        return cls(
            gpu_hours=float(entry.get("gpu_hours", math.inf)),
            host_hours=float(entry.get("host_hours", math.inf)),
            source=_sourced(entry),
        )

    @classmethod
    def names(cls) -> list[str]:
        """Names of the published rates.

        >>> "llama3" in Failures.names()
        True
        """
        return list(_data()["rates"])

    @classmethod
    def parse(cls, text: str) -> Failures | None:
        """A name, `none`, or `gpu=80000h,host=20000h,restart=5min,spares=4,repair=1day`.

        A name may come first: `llama3,spares=8`.
        """
        if text.strip() == "none":
            return None
        first, *rest = [part.strip() for part in text.split(",")]
        base = None
        if "=" not in first:
            base = cls.known(first)
        else:
            rest = [first, *rest]
        said: dict[str, Any] = dict(vars(base)) if base else {}
        given = set()
        for part in rest:
            key, equals, value = part.partition("=")
            field = {"gpu": "gpu_hours", "host": "host_hours"}.get(key, key)
            if not equals or field not in cls.__dataclass_fields__ or field == "source":
                known = ("gpu", "host", "detect", "restart", "spares", "repair", "replaced")
                raise InputError(f"`{part}` says nothing of failures.{arguments.offer(key, known)}")
            if field in given:
                raise InputError(f"`{key}` is given twice in `{text[:60]}`.")
            given.add(field)
            said[field] = _value(field, value)
        if (
            not base
            and math.isinf(said.get("gpu_hours", math.inf))
            and math.isinf(said.get("host_hours", math.inf))
        ):
            raise InputError(
                f"`{text[:60]}` says no rate. Begin with one of "
                f"{arguments.listed(cls.names())}, or give `gpu=80000h` or `host=20000h`."
            )
        return cls(**said)

    def mtbf(self, machine: Machine) -> float:
        """Mean seconds between interruptions of a run on all of a machine."""
        rate = machine.devices / self.gpu_hours + machine.hosts / self.host_hours
        return math.inf if rate <= 0 else 3600 / rate

    @property
    def outage(self) -> float:
        """Seconds from a failure until the checkpoint is loaded."""
        return self._or_default("detect") + self._or_default("restart")

    @property
    def startup(self) -> float:
        """Seconds until training goes on, without noticing and loading."""
        return self._or_default("restart")

    @property
    def repair_s(self) -> float:
        """Seconds until a failed host is back."""
        return self._or_default("repair")

    def sources(self) -> list[str]:
        """What the rates and the times stand on, a sentence each."""
        texts = [f"failures: {self.source}"]
        names = ["detect", "restart"] + ([] if self.spares is None else ["repair"])
        for name in names:
            if getattr(self, name) is None:
                entry = _data()["defaults"][name]
                length = amounts.whole_run(entry["seconds"])
                texts.append(f"{name}: {length} ({_sourced(entry)})")
        return texts

    def _or_default(self, name: str) -> float:
        value = getattr(self, name)
        return float(_data()["defaults"][name]["seconds"] if value is None else value)


def store_defaults() -> dict[str, Any]:
    """Bandwidths of checkpoint stores where none is given."""
    defaults = _data()["defaults"]
    return {"store": defaults["store"], "host_write": defaults["host_write"]}


def _value(field: str, value: str) -> float | int:
    if field == "spares":
        if not value.isdecimal():
            raise InputError(f"`spares={value[:20]}`: give a whole number of hosts.")
        return int(value[:12])
    if field == "replaced":
        try:
            return float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
        except ValueError:
            raise InputError(f"`replaced={value[:20]}`: give a share such as 0.8.") from None
    if field in ("gpu_hours", "host_hours"):
        return amounts.seconds(value, field.removesuffix("_hours"), unit="h") / 3600
    return amounts.seconds(value, field, zero=True)


def _sourced(entry: dict[str, Any]) -> str:
    return entry["source"] if entry["known"] == "read" else f"{entry['source']} ({entry['known']})"


@cache
def _data() -> dict[str, Any]:
    import yaml

    text = Path(__file__).with_name("failures.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data
