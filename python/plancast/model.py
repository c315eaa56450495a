"""Models: what is trained."""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plancast import _core, arguments, documents, files
from plancast.builder import GraphBuilder
from plancast.checked import checked
from plancast.errors import InputError
from plancast.immutable import Immutable
from plancast.models import document_lengths, hub

if TYPE_CHECKING:
    from plancast.importers.report import ImportReport


# Values of `model_type` that the zoo builds.
_OF_ZOO = ("mt5", "t5", "vit")
# Ends of files that hold a graph rather than sizes.
_IMPORTED = (".pt2", ".onnx")
# Of rotary embeddings: changes no cost, and launchers need it.
_BASE = "rotary_base"
# Keys of a config.json, none of which is a field of the YAML form.
_OF_HUGGING_FACE = ("model_type", "architectures", "hidden_size", "n_embd", "d_model")


@checked
class Model(Immutable):
    """An immutable model: its dataflow graph, and the facts reports need.

    >>> Model.preset("llama3-8b").parameters
    8030261248
    """

    __slots__ = ("_core", "_fields", "_graph", "_report")

    def __init__(
        self,
        core: _core.Model,
        fields: dict[str, Any] | None = None,
        report: ImportReport | None = None,
        graph: dict[str, Any] | None = None,
    ) -> None:
        self._core = core
        self._graph = graph
        self._fields = fields
        self._report = report

    @classmethod
    def preset(
        cls, name: str, *, seq: int | None = None, image: int | None = None, **sizes: int | bool
    ) -> Model:
        """A shipped model.

        Args:
          name: one of `Model.presets()`.
          seq: tokens per sequence; the preset's own by default.
          image: height and width of the images of a net for vision, pixels.
          sizes: other sizes and switches that a family lets choose, such as `target_seq`
            (docs/models.md).

        >>> Model.preset("resnet50", image=288).parameters
        25557032
        """
        from plancast.models import presets

        given = {"seq": seq, "image": image, **sizes}
        chosen = {key: size for key, size in given.items() if size is not None}
        if not presets.is_transformer(arguments.word(name, "name")):
            from plancast.zoo import catalogue  # loaded for its own models only

            if name in catalogue.names():
                return cls.from_graph(catalogue.builder(name, **chosen).graph())
        fields = presets.config(name)
        for key in chosen:
            if key != "seq":
                raise InputError(f"`{name}` has no `{key}` to choose; it has `seq`.")
        return cls.from_config(**{**fields, **chosen})

    @classmethod
    def presets(cls) -> list[str]:
        """Names of all shipped models.

        >>> "gpt3-175b" in Model.presets()
        True
        """
        from plancast.models import presets

        return presets.names()

    @classmethod
    def from_hf(cls, path: str | Path, *, seq: int | None = None) -> Model:
        """A model from a Hugging Face `config.json` or its folder; no weights are read.

        Args:
          path: the file or its folder.
          seq: tokens per sequence; the config's longest by default.
        """
        file = Path(path)
        if files.is_folder(file):
            file = file / "config.json"
        # Most files do not name the model; the folder they came in does.
        return cls._from_hf(file, seq, file.resolve().parent.name)

    @classmethod
    def _from_hf(cls, file: Path, seq: int | None, name: str) -> Model:
        from plancast.models import hf

        values = files.read_mapping(file)
        if values.get("model_type") in _OF_ZOO:
            from plancast.zoo import hf as zoo

            name = name or str(values["model_type"])
            return cls.from_graph(zoo.builder(values, what=f"`{file}`", name=name, seq=seq).graph())
        fields = hf.config(values, what=f"`{file}`")
        if fields["name"] == values.get("model_type") and name:
            fields["name"] = name
        return cls._of(fields, seq)

    @classmethod
    def from_config(cls, *, what: str = "model", **fields: Any) -> Model:
        """A transformer from its sizes (docs/models.md lists the fields).

        >>> Model.from_config(
        ...     name="small", layers=2, hidden=64, heads=4, ffn=256, vocab=1000, seq=32).layers
        2
        """
        return cls._from_fields(fields, what)

    @classmethod
    def from_file(cls, path: str | Path, *, seq: int | None = None) -> Model:
        """A Hugging Face `config.json`, sizes of a transformer or a program in YAML or JSON, or a
        model in a `.pt2` or `.onnx` file.

        Args:
          path: the file; its ending says which.
          seq: tokens per sequence; what the file says by default.
        """
        if str(path).endswith(_IMPORTED):
            return cls._imported(str(path), seq)
        fields = files.read_mapping(path)
        if any(key in fields for key in _OF_HUGGING_FACE):
            return cls.from_hf(path, seq=seq)
        if seq is not None:
            fields["seq"] = seq
        if fields.get("name") is None:
            fields["name"] = Path(path).stem
        return cls._from_fields(document_lengths.located(fields, path), f"`{path}`")

    @classmethod
    def open(cls, text: str, *, seq: int | None = None, image: int | None = None) -> Model:
        """What `-m` on the command line means: a preset, a file, or a name on Hugging Face's hub.

        Of the last the hub's config, where `huggingface_hub` is installed and brings it, else the
        preset of those sizes.
        """
        is_folder = os.path.isdir(text)
        if not is_folder and not files.looks_like_file(text):
            return cls._preset_of_line(text, seq, image)
        if not os.path.exists(text) and hub.is_name(text):
            return cls._of_hub(text, seq, image)
        if image is not None:
            raise InputError(f"`{text}` says its sizes itself; `image` chooses one of a preset.")
        return cls.from_hf(text, seq=seq) if is_folder else cls.from_file(text, seq=seq)

    @classmethod
    def _of_hub(cls, text: str, seq: int | None, image: int | None) -> Model:
        file = hub.config_file(text)
        if file is not None and image is None:
            return cls._from_hf(file, seq, text.rpartition("/")[2])
        return cls.preset(hub.known_preset(text), seq=seq, image=image)

    @classmethod
    def _preset_of_line(cls, text: str, seq: int | None, image: int | None) -> Model:
        try:
            return cls.preset(text, seq=seq, image=image)
        except InputError:
            from plancast.models import presets

            if not presets.is_machine(text):
                raise
            raise InputError(
                f"`{text}` is a machine, and `-m` takes a model. Write `-c {text}`, and the model "
                "behind `-m`, such as `-m llama3-8b`."
            ) from None

    @classmethod
    def from_torch(
        cls,
        module: Any,
        example_inputs: Any = None,
        *,
        seq: int | None = None,
        name: str | None = None,
    ) -> Model:
        """A model from a PyTorch module, by torch.export; no weights are read.

        Args:
          module: an `nn.Module`, best on the `meta` device, or an exported program.
          example_inputs: what the module is called with: a tuple of positional arguments
            or a mapping of keyword arguments. The first dim of the first tensor is the
            batch; its size does not matter.
          seq: tokens per sequence, instead of the second dim of integer inputs.
          name: the model's name; the module's class by default.

        A module that returns a scalar computes its loss itself; else one is added: cross-entropy
        of logits, squared error of anything else. `import_report` says what was not recognised.
        """
        from plancast.importers import model as importer

        made = importer.from_torch(module, example_inputs, seq=seq, name=name)
        return cls(made.core, report=made.report, graph=made.graph)

    @classmethod
    def from_onnx(cls, path: str | Path, *, seq: int | None = None) -> Model:
        """A model from an ONNX file; weights beside the file are not read.

        Args:
          path: the file; the first dim of its first input is the batch.
          seq: tokens per sequence, where the file's dims leave them open or allow others."""
        return cls._imported(str(path), seq)

    @classmethod
    def _imported(cls, path: str, seq: int | None) -> Model:
        from plancast.importers import model as importer

        made = importer.from_file(path, seq=seq)
        return cls(made.core, report=made.report, graph=made.graph)

    @property
    def import_report(self) -> ImportReport | None:
        """What an import did not recognise; None of models that were not imported."""
        return self._report

    @classmethod
    def program(
        cls,
        name: str,
        *,
        dims: dict[str, int],
        given: dict[str, list[str]],
        steps: list[str],
    ) -> Model:
        """A computation that trains nothing: tensors that are given, and steps in index notation.

        Args:
          name: of the program and of its one module; nodes of a strategy are `NAME.STEP`.
          dims: sizes by name.
          given: dims of the tensors that are there at first; `"m:f32"` has a type of its own.
          steps: statements over the dims, or calls of rules (`"w, m, v, p = adam(w0, m0, v0, g)"`).

        >>> product = Model.program(
        ...     "product",
        ...     dims={"i": 64, "j": 64, "k": 64},
        ...     given={"B": ["i", "k"], "C": ["k", "j"]},
        ...     steps=["A[i,j] += B[i,k] * C[k,j]"],
        ... )
        >>> product.name, product.parameters
        ('product', 0)
        """
        fields = {"name": name, "dims": dims, "given": given, "steps": steps}
        return cls._from_fields(fields, f"program `{name}`")

    @classmethod
    def builder(cls, name: str, **dims: int) -> ModelBuilder:
        """A builder for a model described op by op."""
        return ModelBuilder(name, **dims)

    @classmethod
    def _of(cls, fields: dict[str, Any], seq: int | None) -> Model:
        if seq is not None:
            fields = {**fields, "seq": seq}
        return cls._from_fields(fields, "model")

    @classmethod
    def _from_fields(cls, fields: dict[str, Any], what: str) -> Model:
        if "steps" in fields:
            from plancast import programs

            return cls(programs.core_of(fields, what), dict(fields))
        if "documents" in fields:
            fields = {**fields, "documents": document_lengths.lengths(fields["documents"])}
        text = documents.to_json({k: v for k, v in fields.items() if k != _BASE}, what)
        base = fields.get(_BASE)
        if base is not None and not arguments.number(base, _BASE) > 0:
            raise InputError(f"{what}: `{_BASE}` is {base}; it must be a positive number.")
        return cls(_core.Model.transformer(text, what), dict(fields))

    @classmethod
    def from_graph(cls, graph: dict[str, Any], report: ImportReport | None = None) -> Model:
        """A model from a graph as `ModelBuilder` and the importers describe it."""
        return cls(_core.Model.from_graph(graph), report=report, graph=graph)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._graph is not None:
            return Model.from_graph, (self._graph, self._report)
        return Model._from_fields, (self._fields, "model")

    def with_seq(self, seq: int) -> Model:
        """The same transformer with sequences of `seq` tokens."""
        return self._with("seq", seq)

    def with_mtp(self, layers: int) -> Model:
        """The same transformer with modules of multi-token prediction (docs/models.md)."""
        return self._with("mtp_layers", layers)

    def with_documents(self, lengths: int | str | list[int]) -> Model:
        """The same transformer, on sequences packed from documents (docs/context_parallel.md) of
        these lengths, in tokens and in order: a list, or text as --documents takes it (`2K`).

        >>> Model.preset("llama3-8b").with_documents("1K,2K").config["documents"]
        [1024, 2048]
        """
        return self._with("documents", lengths)

    def _with(self, field: str, value: Any) -> Model:
        if self._fields is None or "steps" in self._fields:
            raise InputError(f"`{self.name}` was built by hand; say its `{field}` there.")
        return self.from_config(**{**self._fields, field: value})

    @property
    def name(self) -> str:
        """The model's name."""
        return self._core.name

    @property
    def config(self) -> dict[str, Any] | None:
        """The fields of a transformer, as `from_config` takes them; None of other models."""
        return None if self._fields is None else dict(self._fields)

    @property
    def parameters(self) -> int:
        """Number of trained parameters, tied ones counted once."""
        return self._core.parameters

    @property
    def active_parameters(self) -> int:
        """Parameters that one token meets: of the routed experts those that it visits.

        >>> Model.preset("mixtral-8x7b").active_parameters
        12879925248
        """
        return self._core.active_parameters

    @property
    def layers(self) -> int:
        """Number of repeated layers."""
        return self._core.layers

    @property
    def seq(self) -> int:
        """Tokens per sequence; 0 where samples are no sequences."""
        return self._core.seq

    @property
    def dims(self) -> dict[str, int]:
        """Named sizes, which strategies split by; 0 for those that a plan sets.

        >>> Model.preset("resnet50").dims["height56"]
        56
        """
        return dict(self._core.dims)

    def __str__(self) -> str:
        return str(self._core)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self._core.key == other._core.key

    def __hash__(self) -> int:
        return hash(self._core.key)

    def __repr__(self) -> str:
        return f"<Model {self.name}: {self.parameters:,} parameters, {self.layers} layers>"


@checked
class ModelBuilder(GraphBuilder):
    """Builds a model from named dims, module bodies and op rules.

    `batch` is the micro-batch, set when a plan is bound, as are `replicas`, the
    number of data-parallel parts, and `replica_batch`, the size of one (local batch
    norm); every other dim has a size in elements.

    >>> builder = ModelBuilder("mlp", seq=128, hidden=256, ffn=1024)
    >>> layer = builder.module("layers", repeat=2)
    >>> x = layer.input("x", "batch", "seq", "hidden")
    >>> h = layer.op("mlp.fc1", "linear", x, layer.parameter("w1", "ffn", "hidden"))
    >>> y = layer.op("mlp.fc2", "linear", h, layer.parameter("w2", "hidden", "ffn"))
    >>> layer.output(y)
    >>> builder.build().parameters
    1048576
    """

    def build(self) -> Model:
        """The finished model."""
        return Model.from_graph(self.graph())
