"""Op rules with some factors written as several, or as none.

A shipped rule says `y[b,s,n] += x[b,s,k] * w[n,k]`. Where the features n of a model
are heads and their elements, the same rule is `y[b,s,n_1,n_2] += ... * w[n_1,n_2,k]`;
where an operand is stretched along b, b is left out of its index. The text of the rule
says all of that, so no op needs a second rule.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

from plancast import _core

_INDEXED = re.compile(r"([A-Za-z_][\w.]*)\[([\w.,\s]*)\]")
_SIZE = re.compile(r"size\(([\w.,\s]*)\)")
_HEADER = re.compile(r"\A(\w+)\((.*?)\) -> \((.*?)\) \{\n(.*)\}\s*\Z", re.DOTALL)


class Template:
    """A rule as text, with its arguments and which factors index maps fix."""

    def __init__(self, rule: _core.OpRule) -> None:
        match = _HEADER.match(str(rule))
        assert match is not None, str(rule)
        self.name, inputs, outputs, body = match.groups()
        self.inputs = rule.inputs
        self.outputs = rule.outputs
        self.factors = rule.factors
        self._inputs = [part.strip().removeprefix("param ") for part in inputs.split(",")]
        self._outputs = outputs
        lines = [line.strip() for line in body.splitlines()]
        self._body = [line for line in lines if line and not line.startswith("factors ")]
        mapped = " ".join(re.sub(r"\w+\[[^\]]*\]", "", line) for line in self._body)
        mapped = _SIZE.sub("", mapped)
        words = set(re.findall(r"[A-Za-z_][\w.]*", mapped))
        # Factors that a condition, a map or a lookup names must stay single.
        self.fixed = {factor for factor in self.factors if factor in words}

    def text(
        self,
        symbols: Mapping[str, Sequence[str]],
        operands: Mapping[str, Sequence[str]],
        parameters: Sequence[bool],
    ) -> str:
        """The rule with other indices.

        Args:
          symbols: for each factor its new names, outer first.
          operands: indices of tensors that do not follow from `symbols`, by name.
          parameters: for each argument whether it is trained.
        """

        def indices(match: re.Match[str]) -> str:
            tensor, written = match.group(1), match.group(2)
            if tensor == "size":
                return match.group(0)
            if tensor in operands:
                return f"{tensor}[{','.join(operands[tensor])}]"
            names = [name.strip() for name in written.split(",") if name.strip()]
            spread = [symbol for name in names for symbol in symbols.get(name, (name,))]
            return f"{tensor}[{','.join(spread)}]"

        def size(match: re.Match[str]) -> str:
            names = [name.strip() for name in match.group(1).split(",") if name.strip()]
            spread = [symbol for name in names for symbol in symbols.get(name, (name,))]
            product = " * ".join(f"size({symbol})" for symbol in spread) or "1"
            return f"({product})" if len(spread) > 1 else product

        body = []
        for line in self._body:
            where = line.find(" where ")
            head, tail = (line[:where], line[where:]) if where >= 0 else (line, "")
            body.append("  " + _SIZE.sub(size, _INDEXED.sub(indices, head)) + tail)
        arguments = ", ".join(
            f"param {name}" if trained else name
            for name, trained in zip(self._inputs, parameters, strict=True)
        )
        return "\n".join([f"{self.name}({arguments}) -> ({self._outputs}) {{", *body, "}"])


@functools.lru_cache(maxsize=4096)
def template(call: str, ranks: tuple[int, ...]) -> Template:
    """The template of a shipped rule, or of the text of one."""
    if "{" in call:
        return Template(_core.OpRule.parse(call))
    return Template(_core.OpRule.find(call, list(ranks)))


@functools.lru_cache(maxsize=4096)
def parsed(text: str) -> _core.OpRule:
    """The rule of a text; one object for equal texts."""
    return _core.OpRule.parse(text)
