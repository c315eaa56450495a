"""Sizes as products: what reshapes and ops say of dims."""

from __future__ import annotations

from plancast.importers.atoms import Atom, Piece, atoms_of, expand, find, reshape, unify


def layout(*atoms):
    return [[Piece(atom, dim)] for dim, atom in enumerate(atoms)]


def sizes(pieces):
    return [piece.atom.size for piece in expand(pieces)]


def test_a_reshape_splits_the_atom_for_all():
    hidden = Atom(4096)
    others = layout(Atom(2, batch=True), hidden)
    result = reshape(layout(Atom(2, batch=True), hidden), (2, 32, 128))
    assert result is not None
    assert [sizes(dim) for dim in result] == [[2], [32], [128]]
    assert [sizes(dim) for dim in others] == [[2], [32, 128]]


def test_merged_dims_are_products():
    batch, seq = Atom(3, batch=True), Atom(128)
    flat = reshape(layout(batch, seq, Atom(64)), (384, 64))
    assert flat is not None
    assert atoms_of(flat[0]) == [batch, seq]
    again = reshape(flat, (3, 128, 64))
    assert again is not None
    assert [sizes(dim) for dim in again] == [[3], [128], [64]]


def test_dims_of_size_one_come_and_go():
    result = reshape(layout(Atom(8), Atom(1), Atom(4)), (1, 8, 4, 1))
    assert result is not None
    assert [sizes(dim) for dim in result] == [[], [8], [4], []]


def test_sizes_that_do_not_line_up():
    assert reshape(layout(Atom(4), Atom(3)), (6, 2)) is None
    assert reshape(layout(Atom(4, batch=True)), (2, 2)) is None
    assert not unify([Atom(4), Atom(3)], [Atom(6), Atom(2)])


def test_heads_are_refined_by_their_groups():
    heads, groups, each = Atom(32), Atom(8), Atom(4)
    assert unify([heads], [groups, each])
    assert [atom.size for atom in atoms_of([Piece(heads, 0)])] == [8, 4]
    assert find(heads.parts[0]) is find(groups)


def test_a_batch_of_one_is_still_a_batch():
    batch = Atom(1, batch=True)
    result = reshape(layout(batch, Atom(4)), (1, 4))
    assert result is not None
    assert [atom.batch for atom in atoms_of(result[0])] == [True]


def test_the_batch_spreads():
    batch, first = Atom(3, batch=True), Atom(3)
    assert unify([first], [batch])
    assert find(first).batch
