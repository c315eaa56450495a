"""What pipeline stages may hold: a model as units, and stages as a strategy says them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from plancast import _core
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.model import Model


def cut_points(model: Model) -> list[list[str]]:
    """Units that stages hold whole, in order: each the paths of its modules.

    Layers of lists are units; modules outside go with the unit before them, those in front with
    the first. A model without lists is cut between its modules.

    >>> from plancast import Model
    >>> units = cut_points(Model.preset("llama3-8b"))
    >>> len(units), units[0], units[-1]
    (32, ['embedding', 'layers.0'], ['layers.31', 'head'])
    """
    modules = _core.model_graph(model._core)["modules"]
    lists = any(module["list"] or module["repeat"] > 1 for module in modules)
    units: list[list[str]] = []
    front: list[str] = []
    for module in modules:
        path, in_list = module["path"], module["list"] or module["repeat"] > 1
        if in_list or not lists:
            names = [f"{path}.{i}" for i in range(module["repeat"])] if in_list else [path]
            for name in names:
                units.append([*front, name])
                front = []
        elif units:
            units[-1].append(path)
        else:
            front.append(path)
    if not units:
        raise InputError(f"`{model.name}` has no modules to cut between.")
    return units


def nodes(units: Sequence[Sequence[str]]) -> list[str]:
    """Paths that together are these units; neighbouring layers of a list as one slice.

    >>> nodes([["embedding", "layers.0"], ["layers.1"]])
    ['embedding', 'layers[0:2]']
    """
    out: list[tuple[str, int, int]] = []
    for path in (path for unit in units for path in unit):
        name, _, number = path.rpartition(".")
        if not number.isdecimal():
            out.append((path, -1, -1))
        elif out and out[-1][0] == name and out[-1][2] == int(number):
            out[-1] = (name, out[-1][1], int(number) + 1)
        else:
            out.append((name, int(number), int(number) + 1))
    return [name if begin < 0 else f"{name}[{begin}:{end}]" for name, begin, end in out]


def stage_tree(
    plan: str, held: Sequence[Mapping[str, Any]], *, used: int, devices: int
) -> dict[str, Any]:
    """A tree with stages on the first `used` devices, the others idle.

    Args:
      plan: the rest of the plan in the short form.
      held: stages as `Strategy.stages` takes them.
      used: devices with a stage.
      devices: of the machine.
    """
    tree: dict[str, Any] = {"plan": plan, "stages": [dict(stage) for stage in held]}
    if used < devices:
        tree["idle"] = f"gpus {used}-{devices - 1}" if used < devices - 1 else f"gpu {used}"
    return tree
