"""The legal splits of an op on a mesh and what each owes, from its rule and its gradients'."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

from plancast import _core
from plancast.errors import InputError
from plancast.planners.op_graph import Op
from plancast.planners.relayout import REPLICATE, Layout, Placement, Step, shards

Cut = tuple[str | None, ...]


@dataclass(frozen=True)
class Choice:
    """One split of an op: the factor that each mesh axis cuts, and what follows from the rules.

    `reads` and `writes` are layouts of arguments and results; `wants` those in which gradients of
    results are read (None: no gradient is), `gives` those in which gradients of arguments are left
    (None: there is none). `inside` is what the op and its gradients reduce before they end.
    `product_flops`, `other_flops` and `moved` (bytes) are of one device, forward and backward.
    """

    cut: Cut
    reads: tuple[Layout, ...]
    writes: tuple[Layout, ...]
    wants: tuple[Layout | None, ...]
    gives: tuple[Layout | None, ...]
    inside: tuple[Step, ...]
    product_flops: float
    other_flops: float
    moved: float


def choices(
    op: Op,
    mesh: tuple[int, ...],
    *,
    busy: bool,
    trained: frozenset[int] = frozenset(),
    cut_before: dict[str, int] | None = None,
) -> list[Choice]:
    """All splits of an op over the axes of a mesh, each once.

    Args:
      op: the op.
      mesh: ranks of each axis.
      busy: ops with products are cut over every axis where they can be.
      trained: arguments through which a gradient leaves.
      cut_before: parts that factors are cut into already, by axes outside of the mesh.
    """
    sizes = {f: size // (cut_before or {}).get(f, 1) for f, size in op.sizes.items()}
    rule = facts(str(op.rule))
    shape = _Shape(op, rule, mesh, sizes, _gradients(rule, trained))
    per_axis = [[*shape.factors(parts), None] if parts > 1 else [None] for parts in mesh]
    # Of splits that differ by name alone, as tied factors do, one is kept.
    found: dict[tuple[object, ...], Choice] = {}
    for cut in itertools.product(*per_axis):
        made = shape.choice(cut)
        if made is not None:
            key = (made.reads, made.writes, made.wants, made.gives, made.inside)
            found.setdefault((key, made.product_flops), made)
    out = list(found.values())
    if busy and out and out[0].product_flops:
        working = [c for c in out if _works_everywhere(c, mesh)]
        out = working or out
    return out


def _works_everywhere(choice: Choice, mesh: tuple[int, ...]) -> bool:
    return all(f is not None or n == 1 for f, n in zip(choice.cut, mesh, strict=True))


@dataclass(frozen=True)
class Facts:
    """A rule as planners read it: its text, its factors, factors and own type of each tensor."""

    text: str
    core: _core.OpRule
    factors: tuple[str, ...]
    tensors: dict[str, tuple[tuple[str, ...], str]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@functools.lru_cache(maxsize=1 << 12)
def facts(text: str) -> Facts:
    """What the rule with this text says."""
    core = _core.OpRule.parse(text)
    return Facts(
        text,
        core,
        tuple(core.factors),
        {tensor.name: (tuple(tensor.factors), tensor.dtype) for tensor in core.tensors},
        tuple(argument.name for argument in core.inputs),
        tuple(result.name for result in core.outputs),
    )


@functools.lru_cache(maxsize=1 << 12)
def _gradient_of(text: str, wrt: str) -> Facts | None:
    try:
        return facts(str(facts(text).core.backward([wrt])))
    except InputError:
        return None


def _gradients(rule: Facts, trained: frozenset[int]) -> dict[int, Facts]:
    """Rules of the gradients by argument."""
    out = {}
    for index, name in enumerate(rule.inputs):
        gradient = _gradient_of(rule.text, name) if index in trained else None
        if gradient is not None:
            out[index] = gradient
    return out


_Split = tuple[dict[str, Placement], tuple[tuple[tuple[str, ...], str], ...]]


@functools.lru_cache(maxsize=1 << 16)
def _split(text: str, factor: str, parts: int, sizes: tuple[int, ...]) -> _Split | None:
    """Placements by tensor and what is reduced inside; None where the rule cannot be cut so."""
    rule = facts(text)
    try:
        split = rule.core.split(factor, parts, dict(zip(rule.factors, sizes, strict=True)))
    except InputError:
        return None
    placements = {name: Placement.parse(layout) for name, layout in split.layouts.items()}
    if all(place.kind == "replicate" for place in placements.values()):
        return None
    return placements, tuple((tuple(names), how) for _, names, how in split.reductions)


@functools.lru_cache(maxsize=1 << 16)
def _work(text: str, sizes: tuple[int, ...]) -> tuple[float, float, float]:
    rule = facts(text)
    work = rule.core.work(dict(zip(rule.factors, sizes, strict=True)))
    return work.product_flops, work.other_flops, work.read + work.written


_Layouts = dict[str, Layout]
_Owed = list[tuple[int, tuple[str, ...], str]]


@dataclass(frozen=True)
class _Shape:
    """An op with the sizes of its factors on a mesh, and the rules of its gradients."""

    op: Op
    rule: Facts
    mesh: tuple[int, ...]
    sizes: dict[str, int]
    gradients: dict[int, Facts]

    def factors(self, parts: int) -> list[str]:
        """Those that may be cut into so many parts."""
        sizes = tuple(self.sizes[factor] for factor in self.rule.factors)
        return [
            factor
            for factor, size in zip(self.rule.factors, sizes, strict=True)
            if size % parts == 0 and _split(self.rule.text, factor, parts, sizes) is not None
        ]

    def choice(self, cut: Cut) -> Choice | None:
        """What follows from a cut; None where it is none."""
        forward = self._layouts(self.rule, cut)
        if forward is None:
            return None
        layouts, owed = forward
        gives: list[Layout | None] = [None] * len(self.rule.inputs)
        wants: list[Layout | None] = [None] * len(self.rule.outputs)
        steps = self._reductions(self.rule, owed, layouts)
        work = [self._work_of(self.rule, cut)]
        for index, gradient in self.gradients.items():
            made = self._layouts(gradient, cut)
            if made is None:
                return None
            of_gradient, owed = made
            gives[index] = of_gradient[gradient.outputs[0]]
            for out, result in enumerate(self.rule.outputs):
                wanted = of_gradient.get(f"d_{result}")
                if wanted is not None:
                    wants[out] = _wider(wants[out], wanted)
            steps += self._reductions(gradient, owed, of_gradient)
            work.append(self._work_of(gradient, cut))
        return Choice(
            cut,
            tuple(layouts[name] for name in self.rule.inputs),
            tuple(layouts[name] for name in self.rule.outputs),
            tuple(wants),
            tuple(gives),
            tuple(steps),
            *(math.fsum(part) for part in zip(*work, strict=True)),
        )

    def _layouts(self, rule: Facts, cut: Cut) -> tuple[_Layouts, _Owed] | None:
        """Layouts by tensor, and (axis, tensors, how) of what is reduced inside."""
        left = {factor: self.sizes[factor] for factor in rule.factors}
        places: list[dict[str, Placement]] = []
        owed: _Owed = []
        for axis, factor in enumerate(cut):
            places.append({})
            if factor is None or factor not in left:
                continue
            if left[factor] % self.mesh[axis]:
                return None
            split = _split(rule.text, factor, self.mesh[axis], tuple(left.values()))
            if split is None:  # the gradient is computed whole on all ranks
                continue
            left[factor] //= self.mesh[axis]
            places[-1] = split[0]
            owed += [(axis, names, how) for names, how in split[1]]
        return {n: tuple(p.get(n, REPLICATE) for p in places) for n in rule.tensors}, owed

    def _reductions(self, rule: Facts, owed: _Owed, layouts: _Layouts) -> list[Step]:
        """The collectives inside; states of a recurrence are gathered, all else is reduced."""
        out = []
        for axis, names, how in owed:
            size = 0.0
            for name in names:
                factors, own = rule.tensors[name]
                elements = math.prod(self.sizes[factor] for factor in factors)
                elsewhere = tuple(
                    REPLICATE if other == axis else place
                    for other, place in enumerate(layouts[name])
                )
                size += elements * (4.0 if own else self._element) / shards(elsewhere, self.mesh)
            out.append(Step("all_gather" if how == "scan" else "all_reduce", axis, size))
        return out

    @property
    def _element(self) -> float:
        """Bytes of what has no type of its own: those of the floating-point border."""
        values = (*self.op.outputs, *self.op.inputs)
        return min((v.element for v in values if v.element in (2.0, 4.0)), default=4.0)

    def _work_of(self, rule: Facts, cut: Cut) -> tuple[float, float, float]:
        local = dict(self.sizes)
        for factor, parts in zip(cut, self.mesh, strict=True):
            if factor is not None:
                local[factor] = max(1, local[factor] // parts)
        product, other, elements = _work(rule.text, tuple(local[f] for f in rule.factors))
        return product, other, elements * self._element


def _wider(first: Layout | None, second: Layout) -> Layout:
    """What serves both readers of a gradient."""
    if first is None:
        return second
    return tuple(
        REPLICATE if (a.kind, a.dim) != (b.kind, b.dim) else (a if a.halo >= b.halo else b)
        for a, b in zip(first, second, strict=True)
    )
