"""How large a user's file may be, and errors that name it.

Files come from anywhere. What is read of them is bounded before it is read, no
code of theirs runs, and whatever is wrong with one ends in an InputError.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from plancast.errors import InputError

# The graph of a model of 1,000 layers is some 200 MB of JSON, of less than ten million values.
LARGEST_GRAPH_BYTES = 256 * 2**20
MOST_VALUES = 16_000_000
# Protocol buffers, which ONNX files are, hold less than 2 GiB; weights are apart.
LARGEST_ONNX_BYTES = 2**31 - 1
LARGEST_DIM = 2**40 - 1
MOST_ELEMENTS = 2**62
MOST_DIMS = 8
MOST_NODES = 1_000_000
# Nesting of graphs in graphs.
DEEPEST = 16


@contextlib.contextmanager
def reading(what: str, kind: str, remedy: str) -> Iterator[None]:
    """Turns what malformed contents make go wrong into an InputError.

    Args:
      what: the file, as errors name it.
      kind: what the file should be, `a program of torch.export`.
      remedy: how to get one that can be read.
    """
    try:
        yield
    except InputError:
        raise
    except RecursionError:
        raise InputError(f"`{what}` is nested too deep for {kind}. {remedy}") from None
    except MemoryError:
        raise InputError(f"`{what}` is too large for this machine's memory.") from None
    except (
        AssertionError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError,
    ) as error:  # fmt: skip
        reason = f"{type(error).__name__}: {brief(error)}"
        raise InputError(f"`{what}` is not {kind} ({reason}). {remedy}") from None


def brief(error: Exception) -> str:
    """What went wrong, in one line that quotes no more than a little of the file."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def check_shape(what: str, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape, if a tensor of a model can have it."""
    elements = 1
    for size in shape:
        if not 0 <= size <= LARGEST_DIM:
            raise InputError(
                f"`{what}`: tensor `{name}` has a dim of size {size}; sizes are whole and positive."
            )
        elements *= max(size, 1)
    if len(shape) > MOST_DIMS:
        raise InputError(
            f"`{what}`: tensor `{name}` has {len(shape)} dims; the most is {MOST_DIMS}."
        )
    if elements > MOST_ELEMENTS:
        raise InputError(f"`{what}`: tensor `{name}` has {elements} elements; no model has that.")
    return shape
