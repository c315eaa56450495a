"""How Megatron-core cuts layers into pipeline stages, and the strings that say it."""

from __future__ import annotations

import re
from typing import Any

from plancast.errors import InputError
from plancast.frameworks.plan import default_layout
from plancast.frameworks.table import Facts

_MOST = 100_000
_GROUP = re.compile(r"\(([^()]*)\)\*(\d{1,5})")
_REPEAT = re.compile(r"([EtmL])\*(\d{1,5})")


def layout_of_string(text: str, what: str) -> list[int]:
    """Layers (`t`) and modules of multi-token prediction (`m`) of each stage of
    `--pipeline-model-parallel-layout`.

    >>> layout_of_string("Et*3|(tt|)*2,t|L", "layout"), layout_of_string("Ett|t|m|L", "layout")
    ([3, 2, 2, 1, 0], [2, 1, 1, 0])
    """
    flat = "".join(text.split()).replace(",", "").strip("'\"")
    for pattern in (_GROUP, _REPEAT):
        while match := pattern.search(flat):
            if len(match[1]) * int(match[2]) + len(flat) > _MOST:
                raise InputError(f"{what} describes more than {_MOST:,} layers.")
            flat = flat[: match.start()] + match[1] * int(match[2]) + flat[match.end() :]
    if not re.fullmatch(r"[EtmL|]*", flat) or flat.count("E") != 1 or flat.count("L") != 1:
        raise InputError(
            f"{what} is `{text[:60]}`; it is made of `E`, `t`, `m`, `L` and `|`, with one `E` and "
            "one `L`, as in `Et*3|(t*4|)*6t*3L`."
        )
    if re.search(r"m\|*t", flat):
        raise InputError(f"{what} is `{text[:60]}`; `m` stands behind all `t`, as in `Ett|ttmL`.")
    return [stage.count("t") + stage.count("m") for stage in flat.split("|")]


def string_of_layout(layout: list[int], ahead: int = 0) -> str:
    """The inverse: runs of equal stages in the middle are one group, the last `ahead` are `m`.

    >>> string_of_layout([3, 4, 4, 4, 3]), string_of_layout([2, 1])
    ('Et*3|(t*4|)*3t*3L', 'Et*2|tL')
    >>> string_of_layout([3, 4, 4, 3], 1), string_of_layout([2, 1, 1, 0], 1)
    ('Et*3|(t*4|)*2t*2mL', 'Et*2|t|m|L')
    """
    stages = []
    for count in reversed(layout):
        of_mtp = min(ahead, count)
        ahead -= of_mtp
        plain = count - of_mtp
        stages.append(("t" * plain if plain < 2 else f"t*{plain}") + "m" * of_mtp)
    first, *middle = reversed(stages)
    if not middle:
        return f"E{first}L"
    text, last = f"E{first}|", middle.pop()
    while middle:
        run = next((i for i, stage in enumerate(middle) if stage != middle[0]), len(middle))
        text += f"({middle[0]}|)*{run}" if run > 1 else f"{middle[0]}|"
        middle = middle[run:]
    return f"{text}{last}L"


def read_stages(facts: Facts, layers: int | None, what: str) -> tuple[int, list[int] | None]:
    """Chunks of each stage (`vpp`), and layers of each virtual stage where they are not even.

    Modules of multi-token prediction count as layers behind the others; where no layout says
    otherwise they are on the last stage, beside its even share.
    """
    vpp, layout = _read_layers(facts, layers, what)
    ahead, stages = facts["mtp"], facts["pp"] * vpp
    if not ahead or facts["layout"] is not None or layers is None or stages == 1:
        return vpp, layout
    layout = layout or default_layout(layers, stages)
    layout = [*layout[:-1], layout[-1] + ahead]
    return vpp, None if layout == default_layout(layers + ahead, stages) else layout


def _read_layers(facts: Facts, layers: int | None, what: str) -> tuple[int, list[int] | None]:
    pp = facts["pp"]
    said = [name for name in ("vpp", "layers_per_chunk", "layout") if facts[name] is not None]
    if len(said) > 1:
        raise InputError(
            f"{what}: {' and '.join(facts.key(name) for name in said)} both say the virtual "
            "stages. Keep one."
        )
    if facts["layout"] is not None:
        layout = layout_of_string(facts["layout"], f"{what}: {facts.key('layout')}")
        if len(layout) % pp:
            raise InputError(
                f"{what}: {facts.key('layout')} has {len(layout)} stages, no multiple of {pp}."
            )
        ahead = facts["mtp"]
        if layers is not None and sum(layout) != layers + ahead:
            of_mtp = f" and {ahead} of multi-token prediction" if ahead else ""
            raise InputError(
                f"{what}: {facts.key('layout')} has {sum(layout)} layers, and the model "
                f"{layers}{of_mtp}."
            )
        even = len(set(layout)) == 1 or layout == default_layout(sum(layout), len(layout))
        return len(layout) // pp, None if even else layout
    extra = facts["embedding_counts"] + facts["loss_counts"]
    vpp = facts["vpp"] or facts["vpp_old"] or 1
    if facts["layers_per_chunk"] is not None:
        if layers is None:
            raise InputError(
                f"{what}: {facts.key('layers_per_chunk')} needs the number of layers. "
                "Say `--num-layers`."
            )
        chunk = facts["layers_per_chunk"]
        if (layers + extra) % (pp * chunk):
            raise InputError(
                f"{what}: {facts.key('layers_per_chunk')} = {chunk} times {pp} stages does not "
                f"divide {layers + extra} layers."
            )
        vpp = (layers + extra) // (pp * chunk)
    if pp == 1:
        return vpp, None
    return vpp, _uneven(facts, layers, pp, vpp, extra, what)


def _uneven(
    facts: Facts, layers: int | None, pp: int, vpp: int, extra: int, what: str
) -> list[int] | None:
    ends = facts["first"], facts["last"]
    if ends == (None, None) and not extra:
        return None
    if layers is None:
        raise InputError(f"{what}: uneven stages need the number of layers. Say `--num-layers`.")
    stages = pp * vpp
    if extra:
        if (layers + extra) % stages:
            raise InputError(
                f"{what}: {layers} layers and {extra} for embedding and loss do not divide by "
                f"{stages} virtual stages."
            )
        layout = [(layers + extra) // stages] * stages
        layout[0] -= facts["embedding_counts"]
        layout[-1] -= facts["loss_counts"]
    else:
        free = pp - sum(end is not None for end in ends)
        rest = layers - sum(end or 0 for end in ends)
        each = rest // free if free else 0
        counts = [ends[0] or each, *[each] * (pp - 2), ends[1] or each]
        if sum(counts) != layers or any(count % vpp for count in counts):
            raise InputError(
                f"{what}: {layers} layers cannot be cut into {pp} stages of {vpp} chunks with "
                f"{ends[0] or 'as many'} in the first and {ends[1] or 'as many'} in the last."
            )
        layout = [count // vpp for count in counts] * vpp
    return None if layout == default_layout(layers, stages) else layout


def write_stages(
    pp: int, vpp: int, layout: list[int] | None, layers: int | None, ahead: int = 0
) -> dict[str, Any]:
    """The facts that make Megatron cut the stages as the plan does.

    Args:
      pp: pipeline stages.
      vpp: chunks of each.
      layout: layers of each virtual stage, modules of multi-token prediction among them.
      layers: the model's, without these.
      ahead: how many of these there are.
    """
    stages = pp * vpp
    if layout is None and layers is not None and (ahead or layers % stages):
        layout = default_layout(layers + ahead, stages)
    if layout is not None and pp > 1:
        return {"layout": string_of_layout(layout, ahead)}
    return {"vpp": vpp if vpp > 1 else None}
