"""Saving a run's state: how many bytes, how long training stands still, how long it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from plancast import _core, arguments
from plancast.checked import checked
from plancast.errors import InputError
from plancast.forecast import Forecast
from plancast.machine import Machine
from plancast.training import amounts
from plancast.training.failures import store_defaults

MODES = ("blocking", "async")
PLACES = ("store", "host")
# Bytes of one value of a type, as precision.py names them; mx and nv formats with their scales.
_BYTES = {
    "fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "int16": 2.0, "fp8": 1.0, "fp8-row": 1.0,
    "fp8-block": 1.0, "int8": 1.0, "mxfp8": 1.03125, "int4": 0.5, "nvfp4": 0.5625,
}  # fmt: skip


@checked
@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """How a run saves its state.

    Args:
      mode: `blocking`: training waits until everything is written; `async`: only until it is
        copied to the hosts' memory.
      to: `store`, which all hosts share, or `host`: the memory of another host, over the
        machine's network (gone if both fail).
      every: seconds of training, text such as `30min`, or `best`.
      sharded: every host writes an equal share; else only the hosts of one replica.
      store: bytes per second that the store takes from all hosts, or text such as `2TB/s`.
      host_write: bytes per second that one host can send it.
    """

    mode: str = "blocking"
    to: str = "store"
    every: float | str = "best"
    sharded: bool = True
    store: float | str | None = None
    host_write: float | str | None = None

    def __post_init__(self) -> None:
        for value, known, what in ((self.mode, MODES, "mode"), (self.to, PLACES, "to")):
            if value not in known:
                raise InputError(f"`{what}` is `{value}`.{arguments.offer(value, known)}")
        if self.every != "best":
            object.__setattr__(self, "every", amounts.seconds(self.every, "every"))
        for name in ("store", "host_write"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, amounts.bytes_per_s(value, name))

    @classmethod
    def parse(cls, text: str) -> Checkpoints:
        """`async,store=2TB/s,every=30min`: words and `key=value` pairs, in any order."""
        said: dict[str, float | str | bool] = {}
        for part in (part.strip() for part in text.split(",")):
            key, equals, value = part.partition("=")
            if not equals:
                word = {"blocking": "mode", "async": "mode", "host": "to", "store": "to"}.get(part)
                if word is None and part not in ("sharded", "unsharded"):
                    known = (*MODES, *PLACES, "sharded", "unsharded")
                    raise InputError(f"`{part}` is no checkpoint.{arguments.offer(part, known)}")
                key, found = (word, part) if word else ("sharded", part == "sharded")
            elif key in ("every", "store", "host_write"):
                found = value
            else:
                offer = arguments.offer(key, ("every", "store", "host_write"))
                raise InputError(f"`{part}` says nothing of checkpoints.{offer}")
            if key in said:
                raise InputError(f"`{key}` is given twice in `{text[:60]}`.")
            said[str(key)] = found
        return cls(**said)  # type: ignore[arg-type]

    def sources(self, machine: Machine) -> list[str]:
        """What bandwidths stand on, where they were not given."""
        if self.to == "host":
            return []
        return [
            f"{name.replace('_', ' ')}: {self._rate(name, machine) / 1e9:,.4g} GB/s "
            f"({entry['source']}; {entry['known']})"
            for name, entry in store_defaults().items()
            if getattr(self, name) is None
        ]

    def cost(self, state: float, forecast: Forecast, machine: Machine) -> CheckpointCost:
        """What saving and loading `state` bytes takes on a machine."""
        hosts = machine.hosts if self.sharded else self._writers(forecast, machine)
        rate = self._host_rate(machine) * hosts
        everyone = self._host_rate(machine) * machine.hosts
        if self.to == "store":
            rate = min(rate, self._rate("store", machine))
            everyone = min(everyone, self._rate("store", machine))
        write, load = state / rate, state / everyone
        copy = state / hosts / self._copy_rate(machine)
        if self.mode == "blocking":
            return CheckpointCost(state, max(write, copy), 0.0, load)
        return CheckpointCost(state, copy, write, load)

    def _host_rate(self, machine: Machine) -> float:
        """Bytes per second that one host can send."""
        if self.to == "store":
            return self._rate("host_write", machine)
        if machine.hosts < 2:
            raise InputError(
                "checkpoints to another host's memory need two hosts; write to the `store`."
            )
        sections = [section.to_dict() for section in machine.sections]
        slowest = min(each["nics_per_host"] * each["nic_gbit_per_s"] * 1e9 / 8 for each in sections)
        return float(slowest) or self._rate("host_write", machine)

    def _rate(self, name: str, machine: Machine) -> float:
        given = getattr(self, name)
        if given is not None:
            return float(given)
        entry = store_defaults()[name]
        times = math.ceil(machine.hosts / entry["each_hosts"]) if "each_hosts" in entry else 1
        return float(entry["bytes_per_s"]) * times

    def _writers(self, forecast: Forecast, machine: Machine) -> int:
        """Hosts of one replica."""
        replicas = int(forecast.chosen.get("dp", "1"))
        return max(1, math.ceil(machine.hosts / replicas))

    def _copy_rate(self, machine: Machine) -> float:
        """Bytes per second from the GPUs of one host to its memory."""
        rates = []
        for section in machine.sections:
            fields = section.to_dict()
            one = fields.get("c2c_gb_per_s") or fields.get("pcie_gb_per_s") or 0.0
            uplinks = section.gpus_per_host / max(1, fields.get("gpus_per_host_uplink") or 1)
            rates.append(one * 1e9 * (fields.get("host_copy_share") or 1.0) * uplinks)
        slowest = min(rates)
        return slowest if slowest > 0 else math.inf


@dataclass(frozen=True)
class CheckpointCost:
    """Bytes saved; seconds that training stands still, until it can be loaded after that, and
    that loading takes."""

    bytes: float
    stall_s: float
    lag_s: float
    load_s: float


def state_bytes(parameters: int, forecast: Forecast) -> float:
    """Bytes of a run's state: trained parameters, the optimizer's own copy of them, its moments.

    >>> from plancast import Machine, Model, predict
    >>> model = Model.preset("llama3-8b")
    >>> forecast = predict(model, Machine.preset("dgx-h100"), "tp=8,mb=1")
    >>> state_bytes(model.parameters, forecast) / model.parameters
    14.0
    """
    chosen = forecast.chosen
    stored = chosen.get("param_dtype", "bf16")
    first, _, second = chosen.get("state_dtype", "fp32").partition("+")
    moments = _core.optimizer_moments()[chosen.get("optimizer_type", "adam")]
    each = _of(stored) + sum([_of(first), _of(second or first)][:moments])
    master = chosen.get("master", "0")
    if master not in ("0", "off"):
        each += _of(master) if master in _BYTES else 4.0
    # With a padded vocabulary more are trained than the model has.
    return min(parameters, forecast._core.trained_parameters) * each


def _of(name: str) -> float:
    return _BYTES.get(name, 4.0)
