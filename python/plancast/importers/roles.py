"""Names of dims, from what the ops of a model do with them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plancast.importers.atoms import Atom, find

if TYPE_CHECKING:
    from plancast.importers.binding import Binding, Call


@dataclass(frozen=True)
class Roles:
    """The table `roles.yaml`."""

    order: list[str]
    sized: set[str]
    twins: dict[str, str]
    rules: dict[str, dict[str, str]]


@functools.cache
def roles() -> Roles:
    """The shipped table."""
    import yaml

    text = Path(__file__).with_name("roles.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.safe_load(text)
    return Roles(table["order"], set(table["sized"]), table["twins"], table["rules"])


class DimNames:
    """The name of each class of atoms, and the sizes of all names."""

    def __init__(self, binding: Binding, calls: Iterable[Call]) -> None:
        self.sizes: dict[str, int] = {"batch": 0}
        self._names: dict[int, str] = {}
        self._atoms: list[Atom] = []  # so that no id is used twice
        self._found: dict[int, set[str]] = {}
        self._uses: Counter[int] = Counter()
        self._by_id: dict[int, Atom] = {}
        for call in calls:
            self._look_at(binding, call)
        self._name_all()

    def name(self, atom: Atom) -> str:
        """The dim's name; atoms that no op knows are called by their size."""
        root = find(atom)
        if root.batch:
            return "batch"
        found = self._names.get(id(root))
        if found is None:
            found = self._names[id(root)] = self._unique(f"d{root.size}", root.size)
            self._atoms.append(root)
        return found

    def _look_at(self, binding: Binding, call: Call) -> None:
        known = roles().rules.get(call.node.rule, {})
        said = call.node.attrs.get("roles", {})
        for factor in call.factors:
            atoms = binding.atoms(call, factor)
            for atom in atoms:
                self._by_id[id(atom)] = atom
                self._uses[id(atom)] += 1
            role = said.get(factor) or known.get(factor)
            if len(atoms) != 1:
                continue
            found = self._found.setdefault(id(atoms[0]), set())
            if role:
                found.add(role)
            if call.node.rule.startswith("linear"):
                if factor == "n":
                    found.add("made")
                if factor == "k":
                    found.add("read")

    def _name_all(self) -> None:
        order = {role: place for place, role in enumerate(roles().order)}
        of_role: dict[str, Counter[int]] = {}
        chosen: dict[int, str] = {}
        vocabulary = {
            self._by_id[key].size for key, found in self._found.items() if "vocab" in found
        }
        for key, found in self._found.items():
            if "table" in found:
                self._table(key, found, vocabulary)
            meant = min((order[role] for role in found if role in order), default=None)
            if meant is not None:
                role = roles().order[meant]
            elif {"made", "read"} <= found:
                role = "ffn"  # columns of one linear and rows of the next
            else:
                continue
            chosen[key] = role
            of_role.setdefault(role, Counter())[self._by_id[key].size] += self._uses[key]
        for key, role in chosen.items():
            atom = self._by_id[key]
            if atom.batch:
                continue
            sizes = of_role[role]
            most = max(sizes, key=lambda size: (sizes[size], size))
            plain = len(sizes) == 1 or (role not in roles().sized and atom.size == most)
            name = role if plain else f"{role}{atom.size}"
            self._names[id(atom)] = self._unique(name, atom.size)
            self._atoms.append(atom)

    def _table(self, key: int, found: set[str], vocabulary: set[int]) -> None:
        """Rows of a table that is looked up: the vocabulary if the logits have as many."""
        size = self._by_id[key].size
        tables = [self._by_id[k].size for k, other in self._found.items() if "table" in other]
        whole = size in vocabulary or (not vocabulary and size == max(tables))
        found.add("vocab" if whole else "positions")

    def _unique(self, name: str, size: int) -> str:
        known = self.sizes.setdefault(name, size)
        if known == size:
            return name
        return self._unique(f"{name}_{size}", size)
