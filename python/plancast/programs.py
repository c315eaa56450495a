"""Programs that are no models: what is given, and steps in index notation (docs/rewrites.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plancast import _core, arguments
from plancast.errors import InputError

_KEYS = ("name", "dims", "given", "steps")
_SHORT = {"f32": "fp32", "i64": "int64", "u8": "uint8"}


def core_of(fields: Mapping[str, Any], what: str) -> _core.Model:
    """The program as the core has it; `what` names it in errors."""
    for key in fields:
        if key not in _KEYS:
            raise InputError(f"{what}: no `{key}` in a program.{arguments.offer(key, _KEYS)}")
    dims, given, steps = (fields.get(key) or {} for key in _KEYS[1:])
    if not isinstance(dims, Mapping) or not isinstance(given, Mapping):
        raise InputError(
            f"{what}: `dims` are sizes by name, as in `dims: {{i: 64}}`, and `given` tensors with "
            "their dims, as in `given: {B: [i, k]}`."
        )
    for dim, size in dims.items():
        if not arguments.is_whole(size) or not 0 < int(size) < 2**48:
            raise InputError(f"{what}: dim `{dim}` has size {size}. Sizes are whole and positive.")
    if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
        raise InputError(f"{what}: `steps` is a list of statements, `- A[i,j] += B[i,k] * C[k,j]`.")
    tensors = [_tensor(str(name), of, what) for name, of in given.items()]
    sizes = [(str(dim), int(size)) for dim, size in dims.items()]
    return _core.Model.program(arguments.word(fields["name"], "name"), sizes, tensors, steps)


def _tensor(name: str, dims: Any, what: str) -> tuple[str, list[str], str]:
    name, _, dtype = name.partition(":")
    if dtype not in ("", *_SHORT):
        raise InputError(
            f"{what}: `{name}` has no element type `{dtype}`; a tensor has the plan's type if "
            f"nothing is said, or {arguments.listed(_SHORT)}."
        )
    dims = [dims] if isinstance(dims, str) else dims
    if not isinstance(dims, list) or not all(isinstance(dim, str) for dim in dims):
        raise InputError(f"{what}: `{name}` is given with its dims, as in `{name}: [i, k]`.")
    return name, dims, _SHORT.get(dtype, "")
