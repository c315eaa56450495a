"""Sizes as products: which dims of all tensors are one and the same.

A dim of a tensor is a list of *atoms*, outer first. Ops say that dims are the same
(`unify`); a reshape that splits 4096 into 32 x 128 splits the atom itself, so every
tensor that has it sees the two parts. What views do then needs no ops at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class Atom:
    """A size that is not known to be a product; after `find`, the one that speaks for it."""

    __slots__ = ("batch", "parent", "parts", "size")

    def __init__(self, size: int, *, batch: bool = False) -> None:
        self.size = size
        self.batch = batch
        self.parent: Atom | None = None
        self.parts: tuple[Atom, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.size}{' batch' if self.batch else ''} {id(self) & 0xFFFF:x}>"


@dataclass(frozen=True)
class Piece:
    """An atom in a tensor. `dim` is the dim of the tensor in memory it is part of,
    or -1 if it is not there (`expand`)."""

    atom: Atom
    dim: int

    @property
    def stretched(self) -> bool:
        """Whether all elements along it are the same one."""
        return self.dim < 0


Layout = list[list[Piece]]


def find(atom: Atom) -> Atom:
    """The representative of an atom's class."""
    root = atom
    while root.parent is not None:
        root = root.parent
    while atom.parent is not None:
        atom.parent, atom = root, atom.parent
    return root


def expand(pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces in atoms that are whole; those of size one are none, but for the batch."""
    result: list[Piece] = []
    stack = list(pieces)[::-1]
    while stack:
        piece = stack.pop()
        atom = find(piece.atom)
        if atom.parts:
            stack.extend(Piece(part, piece.dim) for part in reversed(atom.parts))
        elif atom.size != 1 or atom.batch:
            result.append(Piece(atom, piece.dim))
    return result


def atoms_of(pieces: Iterable[Piece]) -> list[Atom]:
    """The whole atoms of a list."""
    return [piece.atom for piece in expand(pieces)]


def unify(first: Sequence[Atom], second: Sequence[Atom]) -> bool:
    """Makes two lists of one size the same; false if their products do not line up."""
    left = [Piece(atom, 0) for atom in first]
    right = [Piece(atom, 0) for atom in second]
    while True:
        left, right = expand(left), expand(right)
        if not left or not right:
            return not left and not right
        a, b = left[0].atom, right[0].atom
        if a is b:
            pass
        elif a.size == b.size:
            _union(a, b)
        elif a.size % b.size == 0 and b.size > 1 and not a.batch:
            a.parts = (Atom(b.size), Atom(a.size // b.size))
            continue
        elif b.size % a.size == 0 and a.size > 1 and not b.batch:
            b.parts = (Atom(a.size), Atom(b.size // a.size))
            continue
        elif a.size == 1 and a.batch:
            left = left[1:]
            continue
        elif b.size == 1 and b.batch:
            right = right[1:]
            continue
        else:
            return False
        left, right = left[1:], right[1:]


def _union(a: Atom, b: Atom) -> None:
    if b.parts or (b.batch and not a.batch):
        a, b = b, a
    b.parent = a
    a.batch = a.batch or b.batch


def reshape(layout: Layout, shape: Sequence[int]) -> Layout | None:
    """The layout of the same elements in row-major order in another shape."""
    pieces = expand(piece for dim in layout for piece in dim)
    result: Layout = []
    for size in shape:
        dim: list[Piece] = []
        left = size
        while left > 1 or (pieces and pieces[0].atom.batch and pieces[0].atom.size == 1 == left):
            if not pieces:
                return None
            piece = pieces.pop(0)
            atom = piece.atom
            if left % atom.size == 0:
                dim.append(piece)
                left //= atom.size
                if left == 1 and atom.size == 1:
                    break
            elif atom.size % left == 0 and not atom.batch:
                atom.parts = (Atom(left), Atom(atom.size // left))
                pieces = expand([piece, *pieces])
            else:
                return None
        result.append(dim)
    return result if not pieces else None
