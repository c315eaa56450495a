"""Op rules: ops said in index notation, the only source of what a split owes."""

from __future__ import annotations

from dataclasses import dataclass

from plancast import _core
from plancast.checked import checked


def rules() -> list[str]:
    """Names of the shipped rules.

    >>> "linear" in rules()
    True
    """
    return _core.OpRule.names()


@dataclass(frozen=True)
class Split:
    """What splitting one factor means.

    `layouts` says of each tensor whether every part holds all of it
    (`replicate`), its own piece of a dim (`shard(1)`, or `shard(1, halo 1+1)`
    with neighbouring elements on either side) or a value that is yet to be
    reduced (`partial(sum)`). `reductions` are owed inside the op: after
    which statement, of which tensors, and how.
    """

    layouts: dict[str, str]
    reductions: tuple[tuple[int, tuple[str, ...], str], ...]


@checked
class Rule:
    """One op rule (docs/op_rules.md describes the notation).

    >>> rule = Rule.parse("product(a, param b) -> (y) { y[i,j] += a[i,k] * b[k,j] }")
    >>> rule.split("k", 2, i=4, j=4, k=4).layouts["y"]
    'partial(sum)'
    """

    __slots__ = ("_core",)

    def __init__(self, core: _core.OpRule) -> None:
        self._core = core

    @classmethod
    def parse(cls, text: str) -> Rule:
        """A rule from its text."""
        return cls(_core.OpRule.parse(text))

    @classmethod
    def find(cls, call: str) -> Rule:
        """A shipped rule, by name; `conv2d(stride=2, pad=1)` binds its attributes.

        >>> print(Rule.find("slice(start=4)"))
        slice(x) -> (y) {
          factors b, i, _1, x.1
          y[b,i,_1] = x[b,x.1,_1] where x.1 == i + 4
        }
        """
        return cls(_core.OpRule.find(call))

    @property
    def name(self) -> str:
        """The rule's name."""
        return self._core.name

    @property
    def factors(self) -> list[str]:
        """Names of the indices."""
        return self._core.factors

    def backward(self, *wrt: str) -> Rule:
        """The rule that yields the gradients of the inputs `wrt` (all by default)."""
        return Rule(self._core.backward(list(wrt)))

    def split(self, factor: str, parts: int, /, **sizes: int) -> Split:
        """What cutting `factor` into `parts` means; `sizes` gives every factor's extent.

        >>> convolution = Rule.find("conv1d(pad=1)")
        >>> convolution.split("i", 4, b=8, n=16, i=32, c=8, p=32, k=3).layouts["x"]
        'shard(2, halo 1+1)'
        """
        split = self._core.split(factor, parts, sizes)
        reductions = tuple((after, tuple(names), how) for after, names, how in split.reductions)
        return Split(split.layouts, reductions)

    def __str__(self) -> str:
        return str(self._core)

    def __repr__(self) -> str:
        return f"<Rule {self.name}>"
