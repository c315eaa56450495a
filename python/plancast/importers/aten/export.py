"""Modules as exported programs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from plancast.errors import InputError
from plancast.importers.limits import brief

# An example batch that no other size is likely to be taken for, and that is not the
# one that torch.export makes a constant of.
_BATCHES = (3, 5, 7, 11, 13)


def require_torch() -> Any:
    """The module torch, or an error that says how to get it."""
    try:
        import torch
        import torch.export
    except ImportError:
        raise InputError(
            "torch is not installed, and modules are read with it. "
            "Get it with: pip install plancast[torch]"
        ) from None
    return torch


def export(module: Any, example_inputs: Any, seq: int | None) -> Any:
    """The exported program of a module, with a batch of its own choice.

    Args:
      module: an `nn.Module`, on any device; `meta` needs no memory.
      example_inputs: positional arguments as a tuple, or keyword arguments as a mapping;
        the first dim of the first tensor, and of all others that have the same size there,
        is the batch.
      seq: replaces the second dim of integer inputs, if said.
    """
    torch = require_torch()
    if not isinstance(module, torch.nn.Module):
        raise InputError(
            f"`module` is a {type(module).__name__}; a torch.nn.Module or an exported program "
            "is needed."
        )
    arguments, keywords = _examples(example_inputs)
    tensors = [item for item in [*arguments, *keywords.values()] if isinstance(item, torch.Tensor)]
    if not tensors or not tensors[0].dim():
        raise InputError(
            "`example_inputs` holds no tensor with a batch as first dim. "
            'Give what the module is called with, such as (ids,) or {"input_ids": ids}.'
        )
    batch = tensors[0].shape[0]
    known = {size for tensor in tensors for size in tensor.shape[1:]} | {batch}
    chosen = next(size for size in (*_BATCHES, 17, 19, 23) if size not in known)

    def resized(item: Any, size: int) -> Any:
        if not isinstance(item, torch.Tensor):
            return item
        shape = list(item.shape)
        if shape and shape[0] == batch:
            shape[0] = size
        if seq is not None and len(shape) > 1 and not item.dtype.is_floating_point:
            shape[1] = seq
        if item.device.type == "meta" or tuple(shape) != tuple(item.shape):
            return torch.empty(shape, dtype=item.dtype, device=item.device)
        return item.clone()  # two inputs that are one tensor would become one input

    with warnings.catch_warnings(), _quiet():
        warnings.simplefilter("ignore")
        for size in (chosen, batch):
            given = tuple(resized(item, size) for item in arguments)
            named = {key: resized(item, size) for key, item in keywords.items()}
            try:
                return torch.export.export(module, given, named, strict=False)
            except Exception as error:  # whatever the module's own code raises
                failure = error
    raise InputError(
        f"torch.export cannot trace `{type(module).__name__}`: {type(failure).__name__}: "
        f"{brief(failure)}"
    ) from failure


def _examples(example_inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(example_inputs, Mapping):
        return (), dict(example_inputs)
    if isinstance(example_inputs, Sequence):
        return tuple(example_inputs), {}
    return (example_inputs,), {}


def _quiet() -> Any:
    """Export logs what it finds odd in modules; forecasts do not depend on it."""
    import contextlib
    import logging

    @contextlib.contextmanager
    def quiet() -> Any:
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)

    return quiet()
