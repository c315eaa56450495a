"""Rules written here split and differentiate exactly, in the prime field of 2^61 - 1.

Sums in a prime field are exact and do not depend on order, so a wrong split
cannot hide behind rounding. Rules of this test are sums and products; the
C++ oracle covers the other functions.
"""

from __future__ import annotations

import itertools
import random
import re

import plancast as pc
import pytest

P = 2**61 - 1

NORM = """
weighted(x, param w) -> (y) {
  total[b] += x[b,h] * w[h]
  y[b,h] = x[b,h] * total[b]
  save x, w
}
"""


def random_rule(seed):
    """A sum of products over three factors, every factor in one operand at least."""
    draw = random.Random(seed)
    factors = ["i", "j", "k"]
    while True:
        a = [f for f in factors if draw.random() < 0.7]
        b = [f for f in factors if draw.random() < 0.7]
        y = [f for f in factors if draw.random() < 0.6]
        if set(a) | set(b) == set(factors) and a and b and y:
            break
    for dims in (a, b, y):
        draw.shuffle(dims)
    combine = "+=" if set(y) != set(factors) else "="
    tensor = "{}[{}]".format
    return (
        f"random_{seed}(a, param b) -> (y) {{\n"
        f"  {tensor('y', ','.join(y))} {combine} {tensor('a', ','.join(a))} * "
        f"{tensor('b', ','.join(b))}\n  save a, b\n}}"
    )


# Windows of two, two apart, from one before the start.
CONVOLUTION = """
windows(x, param w) -> (y) {
  let stride = 2, pad = 1
  y[b,i] += x[b,p] * w[k] where p == stride * i + k - pad
  save x, w
}
"""

FLATTEN = "flat(x, param w) -> (y) { y[f] = x[i,j] * w[j] where f == size(j) * i + j\n save x, w }"

RULES = [NORM, CONVOLUTION, FLATTEN, *(random_rule(seed) for seed in range(12))]
SIZES = {"b": 4, "f": 24, "h": 6, "i": 4, "j": 6, "k": 2, "p": 8}


class Evaluator:
    """Runs the statements of a rule's canonical text on dictionaries of field elements."""

    def __init__(self, rule):
        lines = str(rule).splitlines()
        self.factors = rule.factors
        header = re.match(r"\S+?\((.*)\) -> \((.*)\)", lines[0])
        self.inputs = [word.split()[-1] for word in header[1].split(",")]
        self.outputs = [word.strip() for word in header[2].split(",")]
        self.statements = []
        self.dims = {}
        for line in lines[1:]:
            match = re.match(r"  (\w+)\[([\w,]*)\](?::\w+)? (\+?=) (.*)", line)
            if match:
                self._add(*match.groups())

    def _add(self, target, dims, combine, text):
        text, _, where = text.partition(" where ")
        for name, indices in [(target, dims), *re.findall(r"(\w+)\[([\w,]*)\]", text)]:
            self.dims[name] = tuple(filter(None, indices.split(",")))
        body = re.sub(
            r"(\w+)\[([\w,]*)\]",
            lambda m: f"T['{m[1]}'][({m[2]}{',' if m[2] else ''})]",
            text,
        )
        box = [f for f in self.factors if f in re.findall(r"\w+", f"{dims},{text},{where}")]
        where = re.sub(r"size\((\w+)\)", lambda m: str(SIZES[m[1]]), where or "True")
        holds = compile(where, "where", "eval")
        self.statements.append((target, holds, box, compile(body, "rule", "eval")))

    def run(self, values, indices, reduced=None):
        """All tensors for the indices given of each factor; `reduced(statement, tensors)` may
        complete what a split owes inside."""
        tensors = dict(values)
        for number, (target, holds, box, body) in enumerate(self.statements):
            places = itertools.product(*(indices[f] for f in self.dims[target]))
            result = dict.fromkeys(places, 0)
            for point in itertools.product(*(indices[f] for f in box)):
                at = dict(zip(box, point, strict=True))
                if not eval(holds, {}, at):
                    continue
                place = tuple(at[f] for f in self.dims[target])
                value = eval(body, {"T": tensors, **at})
                result[place] = (result.get(place, 0) + value) % P
            tensors[target] = result
            if reduced is not None:
                reduced(number, tensors)
        return tensors

    def draw(self, seed):
        draw = random.Random(seed)
        full = {f: range(SIZES[f]) for f in self.factors}
        return {
            name: {
                point: draw.randrange(P)
                for point in itertools.product(*(full[f] for f in self.dims[name]))
            }
            for name in self.inputs
        }

    def full(self):
        return {f: range(SIZES[f]) for f in self.factors}


def run_parts(evaluator, values, factor, parts, split):
    """The statements in lock step on all parts, with the reductions that the split owes."""
    size = SIZES[factor] // parts
    indices = [
        {**evaluator.full(), factor: range(part * size, (part + 1) * size)} for part in range(parts)
    ]
    states = [dict(values) for _ in range(parts)]
    for number, (target, *_rest) in enumerate(evaluator.statements):
        single = [evaluator.statements[number]]
        for part in range(parts):
            step = object.__new__(Evaluator)
            step.statements, step.dims = single, evaluator.dims
            states[part] = step.run(states[part], indices[part])
        for after, names, how in split.reductions:
            if after != number:
                continue
            assert how == "sum"
            for name in names:
                total = merged([state[name] for state in states])
                for state in states:
                    state[name] = total
        assert target in states[0]
    return states


def merged(shares):
    total = {}
    for share in shares:
        for place, value in share.items():
            total[place] = (total.get(place, 0) + value) % P
    return total


def whole(shares, layout):
    """The tensor that the parts hold together under a layout."""
    if layout == "replicate":
        assert all(share == shares[0] for share in shares)
        return shares[0]
    if layout == "partial(sum)":
        return merged(shares)
    assert layout.startswith("shard(")
    together = {}
    for share in shares:
        assert not together.keys() & share.keys()
        together.update(share)
    return together


def owner_of(factor, text, evaluator):
    """Tied factors are cut together: every part makes its piece of the result."""
    for tied in re.findall(r"(\w+) == (?:[\w()]+ \* )?(\w+)", text):
        if factor in tied:
            return next(f for f in tied if f in evaluator.dims["y"])
    return factor


@pytest.mark.parametrize("text", RULES)
def test_every_split_gives_the_unsplit_result(text):
    rule = pc.Rule.parse(text)
    evaluator = Evaluator(rule)
    values = evaluator.draw(seed=7)
    expected = evaluator.run(values, evaluator.full())
    for factor in rule.factors:
        sizes = {f: SIZES[f] for f in rule.factors}
        split = rule.split(factor, 2, **sizes)
        states = run_parts(evaluator, values, owner_of(factor, text, evaluator), 2, split)
        for output in evaluator.outputs:
            shares = [state[output] for state in states]
            assert whole(shares, split.layouts[output]) == expected[output], (factor, split)


def dot(a, b):
    assert a.keys() == b.keys()
    return sum(a[place] * b[place] for place in a) % P


@pytest.mark.parametrize("text", RULES)
def test_backward_is_the_exact_derivative(text):
    # The rules are of degree two at most in one input, so the central
    # difference is the directional derivative, exactly.
    rule = pc.Rule.parse(text)
    forward = Evaluator(rule)
    values = forward.draw(seed=3)
    result = forward.run(values, forward.full())
    draw = random.Random(5)
    seed = {place: draw.randrange(P) for place in result["y"]}
    backward = Evaluator(rule.backward())
    known = {**result, "d_y": seed}
    gradients = backward.run({name: known[name] for name in backward.inputs}, backward.full())
    half = pow(2, P - 2, P)
    for name in forward.inputs:
        step = {place: draw.randrange(P) for place in values[name]}

        def moved(sign, name=name, step=step):
            other = {place: (values[name][place] + sign * step[place]) % P for place in step}
            return forward.run({**values, name: other}, forward.full())["y"]

        change = (dot(seed, moved(1)) - dot(seed, moved(-1))) * half % P
        assert dot(gradients[f"d_{name}"], step) == change


@pytest.mark.parametrize("seed", range(4))
def test_a_random_op_is_split_and_priced(seed):
    text = random_rule(seed)
    rule = pc.Rule.parse(text)
    dims = {"i": 128, "j": 256, "k": 512}
    builder = pc.Model.builder(f"random-{seed}", **dims)
    module = builder.module("layers")
    arguments = rule._core.inputs
    a = module.input("a", *arguments[0].factors)
    module.output(module.op("own", text, a, module.parameter("b", *arguments[1].factors)))
    model = builder.build()
    machine = pc.Machine.preset("dgx-a100-80g:1x4")
    for factor in ("i", "j", "k"):
        tree = pc.Strategy.parse("dp=1,tp=4,mb=1")
        tree["layers.own"].split(tp=f".{factor}")
        assert pc.predict(model, machine, tree, batch=1).iteration_time > 0
