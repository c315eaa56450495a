"""How torchtitan cuts a model into pipeline stages."""

from __future__ import annotations

import re
from typing import Any

from plancast.errors import InputError
from plancast.frameworks.plan import default_layout, layout_of
from plancast.frameworks.table import Facts

# torch.distributed.pipelining.schedules, and the schedules of plans.
SCHEDULES = {
    "1F1B": "1f1b",
    "GPipe": "gpipe",
    "Interleaved1F1B": "interleaved",
    "LoopedBFS": "breadth-first",
    "ZBVZeroBubble": "zbv",
    "DualPipeV": "dualpipev",
}
OLD_SCHEDULES = {
    "interleaved_1f1b": "Interleaved1F1B",
    "flexible_interleaved_1f1b": "Interleaved1F1B",
}
SINGLE = ("1f1b", "gpipe")  # one stage on each rank
_TWO = ("zbv", "dualpipev")  # two, in the shape of a V


def balanced(layers: int, stages: int, first: int, last: int) -> list[int]:
    """Layers of each stage where the embedding counts as `first` and the head as `last`.

    The stages in front get what does not divide
    (distributed/pipeline_parallel.py: generate_llm_fqn_per_model_part).

    >>> balanced(32, 4, 1, 1), balanced(32, 4, 0, 0)
    ([8, 9, 8, 7], [8, 8, 8, 8])
    """
    each, extra = divmod(layers + first + last, stages)
    layout = [each + (stage < extra) for stage in range(stages)]
    layout[0] -= first
    layout[-1] -= last
    return layout


def read_stages(
    facts: Facts, schedule: str, layers: int | None, what: str
) -> tuple[int, list[int] | None]:
    """Chunks of each rank (`vpp`), and the layers of each virtual stage if they are known."""
    pp = facts["pp"]
    said = _said_layout(facts, layers, what)
    if said is not None:
        return _chunks(len(said), pp, what), said
    first, last = facts["first_less"], facts["last_less"]
    stages = pp if schedule in SINGLE else 2 * pp
    if facts["layers_per_stage"] is not None:
        if layers is None:
            raise InputError(
                f"{what}: {facts.key('layers_per_stage')} makes stages of so many layers, and the "
                "file names no model that Plancast knows. Give the model."
            )
        stages = -(-(layers + first + last) // facts["layers_per_stage"])
    vpp = _chunks(stages, pp, what)
    if layers is None:
        if first or last:
            facts.note(
                "torchtitan counts the embedding and the head as layers when it cuts stages; "
                "give the model to have them cut so."
            )
        return vpp, None
    layout = balanced(layers, stages, first, last)
    if min(layout) < 0 or (min(layout[1:-1], default=1) < 1):
        raise InputError(f"{what}: {stages} stages are too many for the model's {layers} layers.")
    return vpp, None if layout == default_layout(layers, stages) else layout


def _said_layout(facts: Facts, layers: int | None, what: str) -> list[int] | None:
    parts, points = facts["parts"], facts["split_points"]
    if parts:
        good = isinstance(parts, list) and all(
            isinstance(part, list) and all(isinstance(name, str) for name in part) for part in parts
        )
        if not good:
            raise InputError(
                f"{what}: {facts.key('parts')} must be a list of lists of module names."
            )
        return [sum(bool(re.match(r"layers\.\d+$", name)) for name in part) for part in parts]
    if not points:
        return None
    begins = [0]
    for point in points:
        match = re.fullmatch(r"layers\.(\d{1,9})", point)
        if match is None or int(match[1]) <= begins[-1]:
            raise InputError(
                f"{what}: {facts.key('split_points')} must rise, as in `layers.8`, `layers.16`, "
                f"not `{point}`."
            )
        begins.append(int(match[1]))
    if layers is None:
        raise InputError(
            f"{what}: the last stage of {facts.key('split_points')} ends with the model, and the "
            "file names none that Plancast knows. Give the model."
        )
    if begins[-1] >= layers:
        raise InputError(f"{what}: `layers.{begins[-1]}` is none of the model's {layers} layers.")
    return [end - begin for begin, end in zip(begins, [*begins[1:], layers], strict=True)]


def _chunks(stages: int, pp: int, what: str) -> int:
    if stages % pp:
        raise InputError(
            f"{what}: {stages} virtual stages are no multiple of the {pp} pipeline ranks."
        )
    return stages // pp


def write_stages(
    pp: int, vpp: int, schedule: str, layout: str | None, layers: int | None
) -> dict[str, Any]:
    """The facts that make torchtitan cut the stages as the plan does."""
    stages = pp * vpp
    if layout is None and layers is not None:
        cut = default_layout(layers, stages)
    elif layout is not None:
        cut = layout_of(layout)
    else:
        # As many layers on each stage: that is what a plan means, too, where they divide.
        if vpp != (1 if schedule in SINGLE else 2):
            raise InputError(
                f"torchtitan runs {vpp} chunks of layers on a rank only with a number of layers "
                f"for each stage. Give the model, or say `layout=`, to have vpp={vpp} written."
            )
        return {"first_less": 0, "last_less": 0}
    if len(cut) != stages:
        raise InputError(
            f"layout={layout} lists {len(cut)} virtual stages, and torchtitan's {schedule} has "
            f"{stages}. List the layers of {stages}."
        )
    begin, parts = 0, []
    for stage, count in enumerate(cut):
        names = [f"layers.{index}" for index in range(begin, begin + count)]
        begin += count
        head = ["tok_embeddings"] if stage == 0 else []
        tail = ["norm", "output"] if stage == stages - 1 else []
        parts.append([*head, *names, *tail])
    if len(set(cut)) == 1 and layout is None and vpp == (1 if schedule in SINGLE else 2):
        return {"first_less": 0, "last_less": 0}
    return {"parts": parts}


def check_chunks(schedule: str, vpp: int) -> str | None:
    """Why a schedule does not run so many chunks on a rank, or None."""
    if schedule in SINGLE and vpp != 1:
        return f"it runs one stage on each rank, and vpp={vpp}"
    if schedule in _TWO and vpp != 2:
        return f"it runs two stages on each rank, and vpp={vpp}"
    if schedule not in (*SINGLE, *_TWO) and vpp < 2:
        return "it runs two stages or more on each rank"
    return None
