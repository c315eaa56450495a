"""Plans as their keys, which the readers fill and the writers take out one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NoReturn

from plancast import _core
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.strategy import Strategy

# What a plan does where it does not say the key: saying it makes no difference.
_DEFAULTS = {
    "tp": "1", "pp": "1", "vpp": "1", "cp": "1", "ep": "1", "zero": "0", "prefetch": "1",
    "unit": "1", "recompute": "none", "accum": "1", "optimizer": "at-end",
}  # fmt: skip
# Keys that have an effect only with more than one rank of an axis, or a stage of ZeRO.
_NEEDS = {"sp": "tp", "cp_type": "cp", "vpp": "pp", "schedule": "pp", "layout": "pp"}
# Other words for the same.
_SAME = {
    ("recompute", "selective:core_attn"): "selective",
    ("recompute", "every:1"): "full",
    ("recompute", "uniform:1"): "full",
    ("order", "tp-pp-dp"): "tp-cp-ep-pp-dp",
    ("order", "tp-cp-pp-dp"): "tp-cp-ep-pp-dp",
    ("order", "tp-ep-pp-dp"): "tp-cp-ep-pp-dp",
}
_SHARDED = ("reshard", "prefetch")
_SYNC = {"each": "each micro-batch", "last": "the last micro-batch"}


class Plan:
    """Keys of a short form and their values; a key without a value has an empty one.

    Writers `take` every key that they write; `finish` refuses what is left.
    """

    def __init__(self, keys: dict[str, str], framework: str) -> None:
        self.keys = keys
        self.framework = framework
        self.remarks: list[str] = []  # how the framework decides what the plan leaves open

    @classmethod
    def of(cls, strategy: Strategy, framework: str) -> Plan:
        """The keys that make a difference, of a strategy without nodes."""
        tree = strategy.to_dict()
        if "stages" in tree:
            raise InputError(
                f"{framework} deals whole layers to stages, and the plan lists its stages by the "
                "nodes they hold. Say how many layers each has, with `layout` in the plan."
            )
        nodes = tree.get("nodes", {})
        tuned = {word for said in nodes.values() for word in said} & {"train", "lora"}
        if tuned:
            raise InputError(
                f"{framework} has no settings for `{'` and `'.join(sorted(tuned))}` in its file: "
                "which parameters are trained is said in the training script. Write the plan "
                "without its nodes."
            )
        if nodes:
            raise InputError(
                f"{framework} has no settings for single modules, and the plan has some for "
                f"`{next(iter(nodes))}`{f' and {len(nodes) - 1} more' if len(nodes) > 1 else ''}. "
                "Write the plan without its nodes."
            )
        return cls.of_short_form(strategy.short_form, framework)

    @classmethod
    def of_short_form(cls, text: str, framework: str) -> Plan:
        """The keys that make a difference."""
        keys = {}
        for item in filter(None, text.split(",")):
            key, _, value = item.partition("=")
            keys[key] = value
        return cls(plain(keys), framework)

    def take(self, key: str) -> str | None:
        """The key's value, which is then no longer in the plan; None if it is not said."""
        return self.keys.pop(key, None)

    def number(self, key: str, default: int = 1) -> int:
        """A count, taken."""
        return int(self.keys.pop(key, default))

    def words(self, key: str) -> list[str] | None:
        """The words of `a+b`, taken; none of `none`; None if the key is not said."""
        value = self.take(key)
        if value is None:
            return None
        return [] if value == "none" else value.split("+")

    def refuse(self, what: str, why: str, nearest: str) -> NoReturn:
        """Raises InputError: the framework cannot run the plan."""
        raise InputError(f"{self.framework} cannot run `{what}`: {why} Nearest: {nearest}.")

    def only(self, key: str, allowed: Iterable[str], why: str, nearest: str) -> None:
        """Takes a key that the framework has no setting for and runs in one way."""
        value = self.take(key)
        if value is not None and value not in allowed:
            self.refuse(f"{key}={value}" if value else key, why, nearest)

    def run_micro_batches(self, stages: str, many: int) -> None:
        """Refuses numbers of micro-batches that the framework's schedules do not take.

        Args:
          stages: `pp`, `vpp` and `schedule` of the plan, as they are said there.
          many: on each rank, in a step.
        """
        if why := _core.why_framework_cannot_run(self.framework, stages, many):
            shown = f"each rank has {many} micro-batch{'es' if many > 1 else ''} a step, and {why}."
            self.refuse(stages, shown, "another batch, mb or pp")

    def without(self, **why: str) -> None:
        """Refuses the keys that the framework has nothing for."""
        for key, reason in why.items():
            self.only(key, (), reason, f"the plan without `{key}`")

    def replicas(self, ranks: int, group: int) -> int:
        """Shard groups of so many ranks among the data-parallel ones."""
        if ranks % group:
            why = f"groups of {group} do not divide dp={ranks}."
            self.refuse(f"hsdp={group}", why, "a divisor of dp")
        return ranks // group

    def take_sync(self, own: str, zero: int, *, accumulates: bool = True) -> None:
        """Takes `sync`, which the framework does in its own way; remarks if plans differ."""
        said = self.take("sync")
        if said not in (None, own) and accumulates:
            self.refuse(f"sync={said}", f"here it reduces in {_SYNC[own]}.", f"sync={own}")
        if said is None and accumulates and own != default_sync(zero):
            self.remarks.append(f"gradients are reduced in {_SYNC[own]}: sync={own}")

    def finish(self) -> None:
        """Refuses a plan with keys that nobody took."""
        for key, value in self.keys.items():
            said = f"{key}={value}" if value else key
            self.refuse(said, "it has no setting for that.", f"the plan without `{key}`")


def plain(keys: dict[str, str]) -> dict[str, str]:
    """Keys without those that make no difference.

    >>> plain({"tp": "1", "sp": "", "pp": "4", "schedule": "1f1b", "mb": "1"})
    {'pp': '4', 'mb': '1'}
    """
    kept = {key: value for key, value in keys.items() if _DEFAULTS.get(key) != value}
    for key, axis in _NEEDS.items():
        if axis not in kept:
            kept.pop(key, None)
    if kept.get("zero") != "3":
        for key in _SHARDED:
            kept.pop(key, None)
    if kept.get("zero") is None or kept.get("hsdp") == keys.get("dp"):
        kept.pop("hsdp", None)
    if kept.get("reshard") == "on" and "pp" not in kept:  # some profiles keep them with pp
        kept.pop("reshard")
    if kept.get("etp") == keys.get("tp", "1"):
        kept.pop("etp")
    if kept.get("schedule") == ("interleaved" if "vpp" in kept else "1f1b"):
        kept.pop("schedule")
    kept |= {key: _SAME[key, value] for key, value in kept.items() if (key, value) in _SAME}
    if kept.get("order") == "tp-cp-ep-pp-dp" and "pp" not in kept:
        kept.pop("order")
    if kept.get("order") in ("tp-cp-ep-dp-pp", "tp-cp-dp-pp", "tp-ep-dp-pp", "tp-dp-pp"):
        kept.pop("order")
    return kept


def default_sync(zero: int) -> str:
    """When gradients are reduced where a plan does not say it.

    >>> default_sync(1), default_sync(3)
    ('last', 'each')
    """
    return "each" if zero > 1 else "last"


def short_form(keys: Mapping[str, object]) -> str:
    """The short form of keys, in canonical order; those of value None are not said.

    >>> short_form({"mb": 1, "tp": 8, "sp": "", "pp": None})
    'tp=8,sp,mb=1'
    """
    said = {key: str(value) for key, value in keys.items() if value is not None}
    items = [f"{key}={value}" if value else key for key, value in plain(said).items()]
    return canonical(",".join(items))


def canonical(text: str) -> str:
    """A short form with its keys in canonical order.

    >>> canonical("mb=1,tp=8")
    'tp=8,mb=1'
    """
    return _core.Strategy.parse(text).short_form()


def normal(text: str) -> str:
    """The short form without what makes no difference.

    >>> normal("tp=8,pp=1,sync=last,mb=1")
    'tp=8,mb=1'
    """
    keys = Plan.of_short_form(canonical(text), "a plan").keys
    if keys.get("sync") == default_sync(int(keys.get("zero", 0))):
        keys.pop("sync")
    return short_form(keys)


def default_layout(layers: int, stages: int) -> list[int]:
    """Layers of each virtual stage where a plan does not say them (docs/strategy.md).

    >>> default_layout(30, 4), default_layout(126, 16)[:2], default_layout(33, 4)
    ([7, 8, 8, 7], [7, 8], [8, 9, 8, 8])
    """
    each, surplus = divmod(layers, stages)
    layout = [each] * stages
    if surplus and (layers + 2) % stages == 0:
        layout = [(layers + 2) // stages] * stages
        layout[0] -= 1
        layout[-1] -= 1
    elif surplus:
        begin = (stages - surplus) // 2
        for stage in range(begin, begin + surplus):
            layout[stage] += 1
    return layout


def layout_text(layout: list[int]) -> str:
    """Layers of virtual stages as a plan says them.

    >>> layout_text([13, 14, 14, 13])
    '13+14x2+13'
    """
    runs: list[list[int]] = []
    for layers in layout:
        if runs and runs[-1][0] == layers:
            runs[-1][1] += 1
        else:
            runs.append([layers, 1])
    return "+".join(str(layers) if n == 1 else f"{layers}x{n}" for layers, n in runs)


def layout_of(text: str) -> list[int]:
    """The inverse of `layout_text`.

    >>> layout_of("13+14x2+13")
    [13, 14, 14, 13]
    """
    layout: list[int] = []
    for run in text.split("+"):
        layers, _, stages = run.partition("x")
        layout += [int(layers)] * int(stages or 1)
    return layout


def size_of(text: str) -> int:
    """Bytes of a size as plans say it.

    >>> size_of("25MB"), size_of("100MiB"), size_of("4096")
    (25000000, 104857600, 4096)
    """
    digits = text.rstrip("KMGTiB")
    unit = text[len(digits) :].removesuffix("B")
    base = 1024 if unit.endswith("i") else 1000
    return int(float(digits) * base ** " KMGT".index(unit[:1] or " "))
