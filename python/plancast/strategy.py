"""Strategies: how a model is laid over a machine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plancast import _core, arguments, documents, files, schedule_file, strategy_words
from plancast.checked import checked
from plancast.errors import InputError
from plancast.strategy_node import Node

if TYPE_CHECKING:
    from plancast.frameworks.formats import Source
    from plancast.launch_config import LaunchConfig


@checked
class Strategy:
    """A strategy tree that mirrors the model's module tree.

    The root holds the plan-wide choices of the short form; nodes say what differs below them.
    They are addressed by dotted paths: `layers.*.attn`, `layers[0:8].mlp`, `layers[-1]`.
    The tree is the one object that is edited in place.

    >>> tree = Strategy.parse("dp=2,tp=4,mb=1")
    >>> tree["layers.*.attn"].split(tp="heads").recompute("full")
    <Node layers.*.attn>
    >>> str(tree)
    'dp=2,tp=4,mb=1'
    """

    __slots__ = ("_core", "_launch")

    def __init__(self, core: _core.Strategy) -> None:
        self._core = core
        self._launch: LaunchConfig | None = None

    @classmethod
    def parse(cls, text: str) -> Strategy:
        """A strategy from the short form, keys in any order.

        >>> Strategy.parse("mb=1,tp=8,recompute=full").short_form
        'tp=8,mb=1,recompute=full'
        """
        plan = schedule_file.with_tables(arguments.word(text, "strategy"))
        return cls(_core.Strategy.parse(plan))

    @classmethod
    def from_dict(
        cls, tree: dict[str, Any], *, what: str = "strategy", folder: str | Path | None = None
    ) -> Strategy:
        """A tree from `{"plan": SHORT_FORM, "nodes": {PATH: DIRECTIVES}}`.

        Args:
          tree: the tree.
          what: names it in errors.
          folder: of its file, where files that it names (`schedule=table.csv`) have to be.

        >>> tree = Strategy.from_dict({"plan": "tp=2", "nodes": {"head": {"split": {"tp": []}}}})
        >>> Strategy.from_dict(tree.to_dict()) == tree
        True
        """
        if isinstance(plan := tree.get("plan"), str):
            tree = {**tree, "plan": schedule_file.with_tables(plan, folder)}
        return cls(_core.Strategy.from_json(documents.to_json(tree, what), what))

    @classmethod
    def from_yaml(cls, text: str, *, what: str = "strategy") -> Strategy:
        """A tree from YAML text; `what` names the text in errors."""
        return cls.from_dict(documents.parse_yaml(text, what), what=what)

    @classmethod
    def from_file(cls, path: str | Path) -> Strategy:
        """A tree from a YAML or JSON file."""
        tree = files.read_mapping(path)
        return cls.from_dict(tree, what=f"`{path}`", folder=Path(path).parent)

    @classmethod
    def open(cls, text: str, *, framework: str | None = None, **known: Any) -> Strategy:
        """What `-s` of commands means: a short form, a tree, or a tree's or an argument file.

        A tree is YAML in braces, `{plan: "dp=8,mb=1", nodes: {...}}`.

        Args:
          text: the words behind `-s`.
          framework: whose argument file it is, if the contents do not show it.
          known: what helps to read an argument file, as `plancast.launchers.read` takes it.
        """
        from plancast.frameworks import files as launch_files

        if framework is not None or launch_files.is_launch_file(text):
            return cls._from_launch(Path(text), framework, known)
        if text.lstrip().startswith("{"):
            return cls.from_yaml(text)
        if "=" not in text and files.looks_like_file(text):
            return cls.from_file(text)
        better = strategy_words.instead(text)
        if better:
            raise InputError(better)
        return cls.parse(text)

    @classmethod
    def from_torchtitan(cls, source: Source, **known: Any) -> Strategy:
        """The plan of torchtitan's configuration: a `.toml` file, its text or parsed contents.

        Args:
          source: where it is.
          known: `gpus`, `model`: what files leave to the launcher (`plancast.launchers.read`).

        What else the file says, and what a plan cannot say, is in `launch`.

        >>> toml = '[parallelism]\\ntensor_parallel_degree = 8\\n[training]\\nlocal_batch_size = 2'
        >>> Strategy.from_torchtitan(toml).short_form
        'tp=8,sp,zero=3,mb=2,recompute=every:2'
        """
        return cls._from_launch(source, "torchtitan", known)

    @classmethod
    def from_megatron(cls, source: Source, **known: Any) -> Strategy:
        """The plan of Megatron-LM's arguments: words, a script, its text, or `vars(args)`.

        >>> Strategy.from_megatron(["--tensor-model-parallel-size", "8", "--micro-batch-size", "1",
        ...                         "--use-distributed-optimizer"]).short_form
        'tp=8,zero=1,mb=1'
        """
        return cls._from_launch(source, "megatron-core", known)

    @classmethod
    def from_deepspeed(cls, source: Source, **known: Any) -> Strategy:
        """The plan of DeepSpeed's configuration: a `.json` file, its text or parsed contents.

        >>> Strategy.from_deepspeed({"zero_optimization": {"stage": 2}}).short_form
        'zero=2'
        """
        return cls._from_launch(source, "deepspeed", known)

    @classmethod
    def from_fsdp(cls, source: Source, **known: Any) -> Strategy:
        """The plan of an FSDP configuration of accelerate, the Trainer, Composer or llm-foundry.

        >>> Strategy.from_fsdp({"fsdp_sharding_strategy": "SHARD_GRAD_OP"}).short_form
        'zero=3,reshard=off'
        """
        from plancast.frameworks import files as launch_files

        return cls._from_launch(source, launch_files.fsdp_dialect(source), known)

    @classmethod
    def _from_launch(cls, source: Source, framework: str | None, known: dict[str, Any]) -> Strategy:
        from plancast.frameworks import formats
        from plancast.launch_config import LaunchConfig

        contents = formats.read(source, framework, **known)
        strategy = cls.parse(contents.strategy)
        strategy._launch = LaunchConfig.of(contents, strategy)
        return strategy

    @property
    def launch(self) -> LaunchConfig | None:
        """The argument file that the strategy was read from; None of others."""
        return self._launch

    def launch_config(self, framework: str, **run: Any) -> str:
        """The text of the argument file with which a framework runs this plan.

        Args:
          framework: `torchtitan`, `fsdp`, `composer`, `deepspeed` or `megatron-core`.
          run: `model`, `batch`, `seq`, `gpus`, `dtype`, `profile`, ...; see
            `plancast.launchers.write`.

        Raises:
          InputError: the framework cannot run it; says why, and the nearest plan it can.

        >>> text = Strategy.parse("dp=4,tp=8,sp,pp=2,zero=1,mb=1").launch_config("megatron-core")
        >>> Strategy.from_megatron(text).short_form
        'dp=4,tp=8,sp,pp=2,zero=1,mb=1'
        """
        from plancast.frameworks import formats

        return formats.write(self, framework, **run)

    @property
    def short_form(self) -> str:
        """The plan-wide choices in canonical order, without the nodes."""
        return self._core.short_form()

    def to_dict(self) -> dict[str, Any]:
        """The tree as `from_dict` takes it."""
        tree: dict[str, Any] = json.loads(self._core.to_json())
        return tree

    def to_yaml(self) -> str:
        """The tree as `from_yaml` takes it."""
        import yaml

        text: str = yaml.safe_dump(self.to_dict(), sort_keys=False)
        return text

    def copy(self) -> Strategy:
        """An independent tree with the same content."""
        copied = Strategy(self._core.copy())
        copied._launch = self._launch
        return copied

    def check_supported(self) -> None:
        """Raises InputError for a key of the language that is not simulated yet."""
        self._core.check_supported()

    def at(self, path: str) -> Node:
        """The node at a dotted path; `tree[path]` is the same.

        A component is a name, `*`, or layers of a list, counted and sliced as in Python.

        >>> Strategy.parse("tp=4").at("layers[0:8].attn").split(tp="heads")
        <Node layers[0:8].attn>
        """
        return Node(self, arguments.word(path, "path"))

    def __getitem__(self, path: str) -> Node:
        return self.at(path)

    def pipeline(
        self,
        axis: str = "pp",
        *,
        stages: int,
        chunks: int = 1,
        schedule: str | None = None,
        layout: str | None = None,
    ) -> Strategy:
        """Cuts the layers into pipeline stages; gives the tree back.

        Args:
          axis: mesh axis of the stages; only `pp` is one.
          stages: number of stages.
          chunks: chunks of layers of each stage (`vpp`).
          schedule: a name, a table or its file (docs/schedules.md); by `chunks` if absent.
          layout: layers of each chunk, as in `14x7+16`; even if absent.

        >>> Strategy.parse("tp=8,mb=1").pipeline("pp", stages=4, chunks=2).short_form
        'tp=8,pp=4,vpp=2,mb=1'
        """
        if axis != "pp":
            raise InputError(f"`{axis}` is no axis of pipeline stages; only `pp` is.")
        said = {"pp": stages, "vpp": chunks, "schedule": schedule, "layout": layout}
        kept = [item for item in self.short_form.split(",") if item.partition("=")[0] not in said]
        new = [
            f"{key}={value}"
            for key, value in said.items()
            if value is not None and not (key == "vpp" and value == 1)
        ]
        plan = Strategy.parse(",".join(filter(None, [*kept, *new]))).short_form
        self._core = self.with_plan(plan)._core
        return self

    def load(self, dim: str, shares: Sequence[float]) -> Strategy:
        """Expected load of every part of a routed dim; gives the tree back.

        Args:
          dim: a dim that tokens are routed over, `experts`.
          shares: what each gets of the tokens, in any common unit; without a
            word all get the same.

        >>> Strategy.parse("ep=2").load("experts", [3, 1]).to_dict()["load"]
        {'experts': [3, 1]}
        """
        self._core.load(arguments.word(dim, "dim"), [float(share) for share in shares])
        return self

    def stages(
        self,
        nodes: Sequence[str | Sequence[str] | Mapping[str, Any]],
        *,
        idle: str | Sequence[str] = (),
    ) -> Strategy:
        """What each virtual stage holds, in the order of the model; gives the tree back.

        Args:
          nodes: of each stage a path as in `at`, or several; together they are all of the model.
            A stage with a mesh of its own is a mapping: `nodes` as before, `mesh` (ranks of dp,
            tp, cp, ep, etp), `devices` (`hosts 0-1`, `gpus 8-15`; after the stage before if not
            said) and `mb`, samples of a micro-batch on one rank.
          idle: devices of the machine that have no stage (`gpus 2-7`, or several such texts);
            all others have one.

        >>> tree = Strategy.parse("pp=2").stages([["embedding", "layers[0:4]"], "layers[4:8]"])
        >>> tree.to_dict()["stages"][1]
        {'nodes': ['layers[4:8]']}
        >>> tree = Strategy.parse("mb=1").stages([
        ...     {"nodes": ["embedding", "layers[0:2]"], "mesh": {"dp": 4, "tp": 1}},
        ...     {"nodes": ["layers[2:8]", "head"], "mesh": {"dp": 2, "tp": 8}}])
        >>> tree.to_dict()["stages"][0]["mesh"]
        {'dp': 4, 'tp': 1}
        """
        said = [
            dict(held)
            if isinstance(held, Mapping)
            else {"nodes": held if isinstance(held, str) else list(held)}
            for held in nodes
        ]
        tree = {**self.to_dict(), "stages": said}
        tree.pop("idle", None)
        if idle:
            tree["idle"] = idle if isinstance(idle, str) else list(idle)
        self._core = Strategy.from_dict(tree)._core
        return self

    def train(self, trains: bool = True) -> Strategy:
        """Whether parameters are trained where no node says otherwise; gives the tree back."""
        self[""].train(trains)
        return self

    def lora(
        self, *, rank: int, on: str | Sequence[str], dropout: float = 0.0, base: str | None = None
    ) -> Strategy:
        """Adapters all over the model, as `Node.lora` has them below a node; gives the tree back.

        >>> Strategy.parse("dp=8").lora(rank=16, on=["qkv"]).to_dict()["nodes"]
        {'': {'lora': {'rank': 16, 'on': ['qkv']}}}
        """
        self[""].lora(rank=rank, on=on, dropout=dropout, base=base)
        return self

    def with_plan(self, text: str) -> Strategy:
        """The same nodes with another plan.

        >>> Strategy.parse("dp=8").lora(rank=16, on="qkv").with_plan("tp=2").to_dict()["plan"]
        'tp=2'
        """
        return Strategy.from_dict({**self.to_dict(), "plan": text})

    def explain(self, path: str, *, layers: int = 0) -> str:
        """Which node decided what for the op or module at `path`, one line a directive.

        Args:
          path: `layers.*.attn.qkv`, or of one layer, `layers.3.attn.qkv`.
          layers: how many the list has; nodes that count from its end (`layers[-1]`) need it.

        >>> tree = Strategy.parse("tp=4")
        >>> _ = tree["layers[0:8]"].recompute("full")
        >>> print(tree.explain("layers.3.mlp.fc1").splitlines()[2])
        recompute: full                                           from `layers[0:8]`
        """
        return self._core.explain(path, layers)

    def __reduce__(self) -> tuple[Any, ...]:
        return Strategy.from_dict, (self.to_dict(),), self._launch

    def __setstate__(self, launch: LaunchConfig | None) -> None:
        self._launch = launch

    def __copy__(self) -> Strategy:
        return self.copy()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Strategy) and self._core.to_json() == other._core.to_json()

    __hash__ = None  # type: ignore[assignment]  # edited in place

    def __str__(self) -> str:
        return self.short_form

    def __repr__(self) -> str:
        nodes = len(self.to_dict().get("nodes", {}))
        return f"<Strategy {self.short_form}{f' and {nodes} nodes' if nodes else ''}>"
