"""Ops that no rule is known for."""

from __future__ import annotations

from plancast.importers.atoms import Atom

_TYPES = {"int64": ":i64", "uint8": ":u8"}


def opaque_text(
    inputs: list[list[Atom]],
    dtypes: list[str],
    parameters: list[bool],
    outputs: list[list[Atom]],
) -> tuple[str, dict[str, Atom]]:
    """A rule that reads all inputs, writes all outputs and can be cut over the batch only.

    Gives the rule's text and the atom of each of its factors.
    """
    factors: dict[str, Atom] = {}

    def index(letter: str, atoms: list[Atom]) -> str:
        names: list[str] = []
        for atom in atoms:
            name = "b" if atom.batch and "b" not in names else f"{letter}_{len(names)}"
            factors[name] = atom
            names.append(name)
        return ",".join(names)

    arguments = [f"x{number}" for number in range(len(inputs))]
    results = [f"y{number}" for number in range(len(outputs))]
    read = [f"{name}[{index(name, atoms)}]" for name, atoms in zip(arguments, inputs, strict=True)]
    lines = []
    for name, atoms in zip(results, outputs, strict=True):
        batched = any(atom.batch for atom in atoms)
        own = "b" if batched else ""
        lines.append(f"  {name}[{index(name, atoms)}] opaque({own})= {' * '.join(read) or '1'}")
    declared = []
    for name, dtype, trained in zip(arguments, dtypes, parameters, strict=True):
        typed = name + _TYPES.get(dtype, "")
        declared.append(f"param {typed}" if trained else typed)
    saves = [f"  save {', '.join(arguments)}"] if arguments else []
    header = f"opaque({', '.join(declared)}) -> ({', '.join(results)}) {{"
    return "\n".join([header, *lines, *saves, "}"]), factors
