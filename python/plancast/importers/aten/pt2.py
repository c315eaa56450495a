"""Programs that `torch.export.save` wrote, read without torch.

A `.pt2` file is a zip archive. Its graph is JSON (`models/*.json`), and that is all
that is read, besides the list of weights. Weights, example inputs and constants, some
of which are pickles, are never opened; so no code of a file runs.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from typing import Any, BinaryIO

from plancast import files
from plancast.errors import InputError
from plancast.importers import limits
from plancast.importers.aten.reader import Meta, Op, Reader
from plancast.importers.aten.results import choose_result
from plancast.importers.ir import Graph, Value

_KIND = "a program of torch.export"
_REMEDY = "Write it with torch.export.save(torch.export.export(module, inputs), PATH)."
# torch's ScalarType: bool and uint8, and the other integers; all else is real.
_SMALL, _WHOLE = (1, 12), (2, 3, 4, 5, 28, 29, 30)
_LARGEST_ARCHIVE = 1 << 50  # weights and all; they are not read
_LARGEST_LIST = 16 << 20  # some 150,000 entries
_LARGEST_RATIO = 200  # of a compressed entry; torch compresses nothing
_ENCRYPTED = 1  # a flag of an entry
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read(path: str, name: str) -> Graph:
    """The graph of a `.pt2` file."""
    with limits.reading(path, _KIND, _REMEDY):
        try:
            with (
                files.opened(path, most=_LARGEST_ARCHIVE) as file,
                zipfile.ZipFile(_Bounded(file)) as archive,
            ):
                program = _json(archive, path, "models/", ".json")
                weights = _json(archive, path, "data/weights/", "_config.json", needed=False)
                tied = _tied(archive, weights)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
            raise InputError(
                f"`{path}` is no zip archive that can be read ({limits.brief(error)}). {_REMEDY}"
            ) from None
        return _Program(path, program["graph_module"], tied).read(name)


def _json(
    archive: zipfile.ZipFile, path: str, folder: str, suffix: str, *, needed: bool = True
) -> Any:
    """The one document in a folder of the archive."""
    found = [
        info
        for info in archive.infolist()
        if f"/{folder}" in f"/{info.filename}" and info.filename.endswith(suffix)
    ]
    if not found and not needed:
        return {}
    if not found:
        raise InputError(f"`{path}` is not {_KIND}: it holds no `{folder}*{suffix}`. {_REMEDY}")
    if len(found) > 1:
        names = ", ".join(f"`{info.filename}`" for info in found[:4])
        raise InputError(f"`{path}` holds {len(found)} programs ({names}); one is needed.")
    entry = found[0]
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _PACKED:
        raise zipfile.BadZipFile(f"{entry.filename} is encrypted, or packed in another way")
    # What headers say of packed sizes can be a lie; the archive's own size is none.
    packed = min(entry.compress_size, os.stat(path).st_size)
    if entry.file_size > min(limits.LARGEST_GRAPH_BYTES, _LARGEST_RATIO * packed):
        raise InputError(
            f"`{path}`: `{entry.filename}` unpacks to {entry.file_size:,} bytes; the most that is "
            f"read is {limits.LARGEST_GRAPH_BYTES:,}, and {_LARGEST_RATIO} times the packed size."
        )
    text = archive.read(entry)
    values = sum(map(text.count, (b",", b"[", b"{")))
    if values > limits.MOST_VALUES:
        raise InputError(
            f"`{path}`: `{entry.filename}` holds some {values:,} values; the most that is read is "
            f"{limits.MOST_VALUES:,}."
        )
    return json.loads(text)


class _Bounded:
    """A file that `zipfile` cannot be made to read whole: its list of entries is one read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _LARGEST_LIST:
            raise zipfile.BadZipFile(
                f"its list of entries has {size:,} bytes; the limit is {_LARGEST_LIST:,}"
            )
        return self._file.read(size if size >= 0 else _LARGEST_LIST)


def _tied(archive: zipfile.ZipFile, weights: Any) -> dict[str, str]:
    """By parameter: the file its numbers are in, which tied ones share.

    Weights on `meta` have no numbers: all of them are in one empty file.
    """
    sizes = {info.filename.rpartition("/")[2]: info.file_size for info in archive.infolist()}
    files = {name: entry["path_name"] for name, entry in dict(weights.get("config") or {}).items()}
    return {name: file for name, file in files.items() if sizes.get(file)}


class _Program:
    """Walks the graph of a program as the archive's JSON says it."""

    def __init__(self, path: str, module: Any, tied: dict[str, str]) -> None:
        self._path, self._module, self._tied = path, module, tied

    def read(self, name: str) -> Graph:
        """The importers' graph."""
        graph = Graph(name)
        self._reader = Reader(graph)
        root, signature = self._module["graph"], self._module["signature"]
        if len(root["nodes"]) > limits.MOST_NODES:
            raise InputError(f"`{self._path}` has {len(root['nodes']):,} nodes; no model has that.")
        env = self._inputs(root, signature)
        self._run(root, env, "", 0)
        results: list[tuple[object, tuple[int, ...]]] = []
        for spec in signature["output_specs"]:
            output = spec.get("user_output") or spec.get("loss_output")
            tensor = (output or {}).get("arg", {}).get("as_tensor") or (output or {}).get("arg", {})
            label = tensor.get("name")
            if label in root["tensor_values"]:
                results.append((env.get(label), self._meta(root, label).shape))
        choose_result(graph, results)
        return graph

    def _inputs(self, root: Any, signature: Any) -> dict[str, Any]:
        env: dict[str, Any] = {}
        shared: dict[str, Value] = {}
        batch = 0
        for spec in signature["input_specs"]:
            ((kind, fields),) = spec.items()
            argument = fields.get("arg", {})
            tensor = argument.get("as_tensor") or argument
            label = tensor.get("name")
            if label is None or label not in root["tensor_values"]:
                if label is not None:
                    env[label] = None
                continue
            meta = self._meta(root, label)
            if kind == "parameter":
                target = str(fields["parameter_name"])
                key = self._tied.get(target, f"={target}")
                value = shared.setdefault(key, Value(meta.shape, "", "parameter", target))
            elif kind == "user_input":
                value = Value(meta.shape, meta.dtype, "data" if meta.dtype else "input", label)
                batch = batch or (meta.shape[0] if meta.shape else 0)
                value.batched = bool(meta.shape) and meta.shape[0] == batch
            else:
                value = Value(meta.shape, meta.dtype, "data", label)
            env[label] = value
        if not batch:
            raise InputError(f"`{self._path}` has no input with a batch as first dim.")
        return env

    def _meta(self, graph: Any, label: str) -> Meta:
        fields = graph["tensor_values"][label]
        shape = tuple(_size(size) for size in fields["sizes"])
        limits.check_shape(self._path, label, shape)
        kind = fields["dtype"]
        return Meta(shape, "uint8" if kind in _SMALL else "int64" if kind in _WHOLE else "")

    def _run(self, graph: Any, env: dict[str, Any], outer: str, depth: int) -> None:
        if depth > limits.DEEPEST:
            raise InputError(f"`{self._path}`: graphs are nested more than {limits.DEEPEST} deep.")
        for node in graph["nodes"]:
            path = _module_path(node) or outer
            inner = [a["arg"]["as_graph"] for a in node["inputs"] if "as_graph" in a["arg"]]
            if inner:
                results = self._inside(graph, env, node, inner[0]["graph"], path, depth)
            else:
                results = self._call(graph, env, node, path)
            labels = [label for output in node["outputs"] for label in _labels(output)]
            env.update(zip(labels, results, strict=False))

    def _inside(
        self, graph: Any, env: dict[str, Any], node: Any, inner: Any, path: str, depth: int
    ) -> list[Any]:
        """Results of a block under no_grad or autocast: its inputs follow the graph."""
        given = [a["arg"] for a in node["inputs"] if "as_tensor" in a["arg"]]
        labels = [label for entry in inner["inputs"] for label in _labels(entry)]
        values = [env[argument["as_tensor"]["name"]] for argument in given]
        own = dict(zip(labels, values, strict=False))
        self._run(inner, own, path, depth + 1)
        return [own[label] for entry in inner["outputs"] for label in _labels(entry)]

    def _call(self, graph: Any, env: dict[str, Any], node: Any, path: str) -> list[Any]:
        labels = [label for output in node["outputs"] for label in _labels(output)]
        known = graph["tensor_values"]
        metas = [self._meta(graph, label) if label in known else 0 for label in labels]
        words = str(node["target"]).split(".")
        if len(words) < 4 or words[:2] != ["torch", "ops"]:
            return self._size_of(graph, labels)
        name = words[3] if words[2] == "aten" else f"{words[2]}::{words[3]}"
        arguments = {a["name"]: self._argument(env, graph, a["arg"]) for a in node["inputs"]}
        several = len(labels) > 1 or any("as_tensors" in output for output in node["outputs"])
        if not metas:
            metas = [0]
        made = self._reader.operator(Op(name, arguments, metas, path, several))
        return list(made) if isinstance(made, tuple | list) else [made]

    def _size_of(self, graph: Any, labels: list[str]) -> list[Any]:
        """Arithmetic on sizes: the example's values."""
        sizes = graph.get("sym_int_values", {})
        return [_size(sizes[label]) if label in sizes else None for label in labels]

    def _argument(self, env: dict[str, Any], graph: Any, argument: Any) -> Any:
        ((kind, content),) = argument.items()
        if kind == "as_tensor":
            return env[content["name"]]
        if kind in ("as_tensors", "as_optional_tensors"):
            return [self._one(env, entry) for entry in content]
        if kind in ("as_sym_int", "as_sym_float", "as_sym_bool"):
            return self._symbol(env, graph, content)
        if kind in ("as_sym_ints", "as_sym_floats", "as_sym_bools"):
            return [self._symbol(env, graph, entry) for entry in content]
        return None if kind == "as_none" else content

    @staticmethod
    def _one(env: dict[str, Any], entry: Any) -> Any:
        tensor = entry.get("as_tensor") or entry
        return env[tensor["name"]] if isinstance(tensor, dict) and "name" in tensor else None

    @staticmethod
    def _symbol(env: dict[str, Any], graph: Any, content: Any) -> Any:
        if "as_name" in content:
            known = env.get(content["as_name"])
            sizes = graph.get("sym_int_values", {})
            return known if known is not None else _size(sizes[content["as_name"]])
        return next(iter(content.values()))


def _labels(output: Any) -> list[str]:
    """Names of what one output stands for."""
    ((kind, content),) = output.items()
    if kind == "as_tensor":
        return [content["name"]]
    if kind in ("as_tensors", "as_optional_tensors"):
        return [(entry.get("as_tensor") or entry).get("name", "") for entry in content]
    if isinstance(content, dict):
        return [str(content.get("as_name", content.get("name", "")))]
    return []


def _size(size: Any) -> int:
    """A size, or the one that a varying size had when it was exported."""
    if "as_int" in size:
        return int(size["as_int"])
    hint = (size.get("as_expr") or {}).get("hint") or {}
    if "as_int" not in hint:
        raise ValueError("a size that varies has no example value")
    return int(hint["as_int"])


def _module_path(node: Any) -> str:
    """The innermost module that a node was traced in."""
    stack = (node.get("metadata") or {}).get("nn_module_stack") or ""
    fields = stack.rpartition(";")[2].split(",")
    return fields[1] if len(fields) > 2 else ""
