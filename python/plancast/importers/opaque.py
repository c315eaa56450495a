"""Ops that no rule is known for."""

from __future__ import annotations

from plancast.importers.atoms import Atom


def opaque_text(
    inputs: list[list[Atom]], parameters: list[bool], outputs: list[list[Atom]]
) -> tuple[str, dict[str, Atom]]:
    """A rule that reads all inputs, writes all outputs and can be cut over the batch only.

    Gives the rule's text and the atom of each of its factors.
    """
    factors: dict[str, Atom] = {}

    def index(letter: str, atoms: list[Atom]) -> str:
        names: list[str] = []
        for atom in atoms:
            name = "b" if atom.batch and "b" not in names else f"{letter}{len(names)}"
            factors[name] = atom
            names.append(name)
        return ",".join(names)

    arguments = [f"x{number}" for number in range(len(inputs))]
    results = [f"y{number}" for number in range(len(outputs))]
    read = [
        f"{name}[{index(f'{name}_', atoms)}]" for name, atoms in zip(arguments, inputs, strict=True)
    ]
    lines = []
    for name, atoms in zip(results, outputs, strict=True):
        lines.append(f"  {name}[{index(f'{name}_', atoms)}] += {' + '.join(read) or '1'}")
    declared = ", ".join(
        f"param {name}" if trained else name
        for name, trained in zip(arguments, parameters, strict=True)
    )
    text = "\n".join([f"opaque({declared}) -> ({', '.join(results)}) {{", *lines, "}"])
    return text, factors
