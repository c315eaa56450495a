"""Stand-ins for what Megatron-Bridge's performance recipes import.

The recipes are Python functions that set fields of a configuration. Run with these in place of
torch and Megatron, they say what they set; what they leave to the model's recipe stays open.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

_ABSENT = frozenset(("hydra", "megatron", "nemo_run", "numpy", "omegaconf", "torch",
                     "transformer_engine", "transformers"))  # fmt: skip


class Anything:
    """Takes any attribute, call and index, and remembers the attributes that were set."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__["_fields"] = dict(fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._fields.setdefault(name, Anything())

    def __setattr__(self, name: str, value: Any) -> None:
        self._fields[name] = value

    def __call__(self, *_: Any, **fields: Any) -> Anything:
        return type(self)(**fields)

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Any:
        return iter(())

    def __contains__(self, _: Any) -> bool:
        return False

    def __getitem__(self, _: Any) -> Anything:
        return Anything()

    def __setitem__(self, _: Any, value: Any) -> None:
        pass

    def __or__(self, _: Any) -> Anything:
        return self

    __ror__ = __or__

    def says(self, path: str) -> bool:
        """Whether a field was set, to None too."""
        at: Any = self
        for name in path.split("."):
            if not isinstance(at, Anything) or name not in at._fields:
                return False
            at = at._fields[name]
        return not isinstance(at, Anything)

    def said(self, path: str) -> Any:
        """What a field was set to; None where nothing was said."""
        at: Any = self
        for name in path.split("."):
            at = at._fields.get(name) if isinstance(at, Anything) else None
        return None if isinstance(at, Anything) else at


class CommOverlapConfig(Anything):
    """Recipes ask whether theirs is one."""


def captures_iteration(model: Any) -> bool:
    """Whether CUDA graphs capture whole iterations."""
    scope = model.said("cuda_graph_scope") or ()
    implementation = model.said("cuda_graph_impl")
    local = implementation == "local" and "full_iteration" in scope
    return implementation == "full_iteration" or local


def choose_dispatcher(model: Any, backend: str | None = None) -> None:
    """Tokens are sent by DeepEP or HybridEP."""
    if backend is not None:
        model.moe_token_dispatcher_type = "flex"
        model.moe_flex_dispatcher_backend = backend


_OWN = {
    "CommOverlapConfig": CommOverlapConfig,
    "apply_flex_dispatcher_backend": choose_dispatcher,
    "is_full_iteration_cuda_graph": captures_iteration,
}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules that are not there, and of Megatron-Bridge those that are."""

    def __init__(self, checkout: Path) -> None:
        self._recipes = checkout / "src/megatron/bridge/perf_recipes"

    def find_spec(self, name: str, *_: Any) -> Any:
        if name.startswith("megatron.bridge.perf_recipes"):
            path = self._recipes.joinpath(*name.split(".")[3:])
            if path.is_dir():
                return importlib.util.spec_from_file_location(
                    name, path / "__init__.py", submodule_search_locations=[str(path)]
                )
            return importlib.util.spec_from_file_location(name, path.with_suffix(".py"))
        if name.split(".")[0] in _ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        module.__path__ = []

        def attribute(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return _OWN.get(name) or Anything()

        module.__getattr__ = attribute  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def install(checkout: Path) -> None:
    """From here on, imports of recipes and of what they need succeed."""
    import builtins

    sys.meta_path.insert(0, _Finder(checkout))
    sys.path.insert(0, str(checkout / "scripts/performance"))
    builtins.CommOverlapConfig = CommOverlapConfig  # type: ignore[attr-defined]
