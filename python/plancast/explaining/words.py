"""Sentences about causes, made of figures of both plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from plancast.parts import WORDS
from plancast.textual import count, duration, percent

if TYPE_CHECKING:
    from plancast.explaining.account import Account, Entry

FAMILIES = {
    "gemm": "products",
    "attention": "attention kernels",
    "convolution": "convolutions",
    "memory": "kernels bound by memory",
    "optimizer": "optimizer kernels",
}
COLLECTIVES = {
    "exposed_tp": "tensor-parallel communication",
    "exposed_dp": "data-parallel communication",
    "exposed_pp": "pipeline messages",
    "exposed_cp": "context-parallel communication",
    "exposed_ep": "expert-parallel communication",
    "exposed_offload": "copies to and from the host",
}

# Sizes nearer to each other are told as equal.
_ALIKE = 0.02


def sentence(key: tuple[str, str, str], mine: Account, theirs: Account) -> str:
    """What differs: `products run at 700 TFLOP/s instead of 650`."""
    part, kind, why = key
    a, b = mine.entries.get((part, kind)), theirs.entries.get((part, kind))
    if part == "software":
        return _software(mine, theirs)
    if why == "presence" or a is None or b is None:
        return _presence(part, kind, a, b)
    if kind in ("slowed", "unlike"):
        return _extra(part, kind, a, b)
    if part in ("compute", "recompute", "optimizer") and why in ("amount", "rate"):
        return _kernels(part, kind, why, a, b, mine, theirs)
    if part in COLLECTIVES and why in ("amount", "rate", "exposure"):
        return _communication(part, why, a, b)
    if part == "bubble" and why in ("passes", "stages", "schedule"):
        return _bubble(why, a, b)
    return _size(part, a, b)


def _extra(part: str, kind: str, a: Entry, b: Entry) -> str:
    x, y = (duration(entry.facts["ps"] / 1e12) for entry in (a, b))
    if kind == "unlike":
        return f"the busiest stage has {x} more to do than the mean stage, instead of {y}"
    if part == "optimizer":
        return f"the optimizer takes {x} beside its kernels instead of {y}"
    again = " that recompute" if part == "recompute" else ""
    return f"kernels{again} take {x} longer beside communication than alone, instead of {y}"


def _presence(part: str, kind: str, a: Entry | None, b: Entry | None) -> str:
    one = a or b
    assert one is not None
    whose = "only this plan has" if b is None else "only the other plan has"
    if kind == "unlike":
        return f"{whose} stages that wait for a busier one"
    if kind == "slowed":
        what = WORDS[part] if part != "compute" else "kernels"
        return f"{whose} {what} slowed beside communication"
    if part == "recompute":
        flops = kind in ("gemm", "attention", "convolution")
        amount = _flops(one.facts["amount"]) if flops else _bytes(one.facts["amount"])
        who = "this plan" if b is None else "the other plan"
        return f"only {who} recomputes {FAMILIES.get(kind, kind)}: {amount} a GPU"
    if part == "bubble" and one.facts:
        return f"{whose} a pipeline to fill: {_pipeline(one)}"
    if part in COLLECTIVES and one.facts:
        return f"{whose} {COLLECTIVES[part]}: {_bytes(one.facts['amount'])} a GPU"
    return f"{whose} {FAMILIES.get(kind, COLLECTIVES.get(part, WORDS.get(part, part)))}"


def _kernels(
    part: str, kind: str, why: str, a: Entry, b: Entry, mine: Account, theirs: Account
) -> str:
    name, flops = FAMILIES.get(kind, kind), kind in ("gemm", "attention", "convolution")
    if part == "recompute":
        name += " that recompute"
    if why == "amount":
        x, y = _told(a.facts["amount"], b.facts["amount"], _flops if flops else _bytes)
        return f"{name} {'do' if flops else 'move'} {x} a GPU instead of {y}"
    x, y = _told(_rate(a), _rate(b), _flop_rate if flops else _byte_rate)
    gpus = [account.forecast.gpu for account in (mine, theirs)]
    on = [f" on {gpu}" if gpus[0] != gpus[1] else "" for gpu in gpus]
    return f"{name}{_sized(a, b)} run at {x}{on[0]} instead of {y}{on[1]}"


def _sized(a: Entry, b: Entry) -> str:
    """How large one of them is against one of the other plan's."""
    size = (a.facts["amount"] / a.facts["count"]) / (b.facts["amount"] / b.facts["count"])
    return f", each {size:.3g} times as large," if abs(size - 1) > _ALIKE else ""


def _communication(part: str, why: str, a: Entry, b: Entry) -> str:
    name = COLLECTIVES[part]
    one = name.endswith("communication")
    if why == "amount":
        x, y = _told(a.facts["amount"], b.facts["amount"], _bytes)
        due = ""
        if a.words["members"] != b.words["members"]:
            due = f" (groups of {_and(a.words['members'])} instead of {_and(b.words['members'])})"
        elif a.words["kinds"] != b.words["kinds"]:
            due = f" ({_and(a.words['kinds'])} instead of {_and(b.words['kinds'])})"
        elif abs(a.facts["count"] / b.facts["count"] - 1) > _ALIKE:
            due = f" (in {count(a.facts['count'])} calls instead of {count(b.facts['count'])})"
        return f"{name} {'sends' if one else 'send'} {x} a GPU instead of {y}{due}"
    if why == "rate":
        x, y = _told(_rate(a), _rate(b), _byte_rate)
        links = [_and(entry.words["link"]) for entry in (a, b)]
        over = links if links[0] != links[1] else ["", links[0]]
        first = f" over {over[0]}" if over[0] else ""
        verb = "runs" if one else "run"
        return f"{name}{_sized(a, b)} {verb} at {x}{first} instead of {y} over {over[1]}"
    x, y = _shares(a, b)
    return f"of what {name} {'takes' if one else 'take'} alone, {x} is waited for instead of {y}"


def _shares(a: Entry, b: Entry) -> tuple[str, str]:
    """Of communication, the shares that are waited for."""
    exposure = [float(entry.factors["exposure"]) for entry in (a, b)]
    return _told(exposure[0], exposure[1], lambda share, digits: percent(share, digits - 2))


def _bubble(why: str, a: Entry, b: Entry) -> str:
    if why == "stages":
        return f"the pipeline has {_pipeline(a)} instead of {_pipeline(b)}"
    if why == "passes":
        x, y = (duration(entry.facts["busy"] / 1e12) for entry in (a, b))
        return f"the busiest stage has {x} to do instead of {y}, and filling the pipeline with it"
    x, y = _told(a.facts["more"], b.facts["more"], lambda value, digits: f"{value:.{digits - 1}f}")
    schedules = [entry.words["schedule"] for entry in (a, b)]
    named = f" ({schedules[0]} instead of {schedules[1]})" if schedules[0] != schedules[1] else ""
    return f"the bubble is {x} times that of equal passes instead of {y} times{named}"


def _pipeline(entry: Entry) -> str:
    facts = entry.facts
    chunks = "" if facts["chunks"] == 1 else f" x {facts['chunks']:.0f} chunks"
    return (
        f"{facts['depth']:.0f} stages for {facts['batches']:.0f} micro-batches{chunks} "
        f"({percent(facts['fill'])} bubble)"
    )


def _size(part: str, a: Entry, b: Entry) -> str:
    x, y = (duration(float(entry.value) / 1e12) for entry in (a, b))
    if part == "launch":
        n, m = (count(entry.facts["launches"]) for entry in (a, b))
        kernels = f"{n} kernels a GPU" + (f" instead of {m}" if n != m else "")
        return f"the host is waited for {x} instead of {y} ({kernels})"
    if part == "straggler":
        return f"slower peers are waited for {x} instead of {y}"
    if part == "bubble":
        waits = f"the busiest stage waits {x} instead of {y}"
        if not (a.facts and b.facts):
            return waits
        return f"{waits}: {_pipeline(a)}{_of(a)} instead of {_pipeline(b)}{_of(b)}"
    if part in COLLECTIVES and "exposure" in a.factors and "exposure" in b.factors:
        sent = _told(a.facts["amount"], b.facts["amount"], _bytes)
        shares = _shares(a, b)
        return (
            f"{COLLECTIVES[part]}: {x} waited for instead of {y}, {shares[0]} instead of "
            f"{shares[1]} of it, of {sent[0]} a GPU instead of {sent[1]}"
        )
    return f"{WORDS[part]}: {x} instead of {y}, not attributed"


def _of(entry: Entry) -> str:
    schedule = entry.words["schedule"]
    return f" as {schedule}" if schedule else ""


def _software(mine: Account, theirs: Account) -> str:
    def told(account: Account) -> str:
        return f"{percent(float(account.level) - 1)} beyond what is simulated"

    names = [account.forecast.profile for account in (mine, theirs)]
    whose = f"runs of {names[0]}"
    versus = f" by {names[1]}" if names[0] != names[1] else ""
    return f"{whose} take {told(mine)} instead of {told(theirs)}{versus}"


def _rate(entry: Entry) -> float:
    return entry.facts["amount"] / entry.facts["ps"] * 1e12 if entry.facts["ps"] else 0.0


def _told(mine: float, theirs: float, write: Callable[[float, int], str]) -> tuple[str, str]:
    """Both figures with as few digits as tell them apart."""
    digits = 3
    while digits < 6 and write(mine, digits) == write(theirs, digits):
        digits += 1
    return write(mine, digits), write(theirs, digits)


def _scaled(value: float, digits: int, units: str) -> str:
    step = 0
    while abs(value) >= 999.5 and step < len(units) - 1:
        value, step = value / 1000, step + 1
    return f"{value:#.{digits}g}".rstrip(".") + f" {units[step].strip()}"


def _flops(value: float, digits: int = 3) -> str:
    return f"{_scaled(value, digits, ' kMGTPE')}FLOP"


def _bytes(value: float, digits: int = 3) -> str:
    return f"{_scaled(value, digits, ' kMGTPE')}B"


def _flop_rate(value: float, digits: int = 3) -> str:
    return f"{_flops(value, digits)}/s"


def _byte_rate(value: float, digits: int = 3) -> str:
    return f"{_bytes(value, digits)}/s"


def _and(names: str) -> str:
    return names.replace("+", " and ") or "no link"
