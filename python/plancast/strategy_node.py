"""Nodes of strategy trees: what is said of one module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from plancast import arguments
from plancast.checked import checked
from plancast.errors import InputError

if TYPE_CHECKING:
    from plancast.strategy import Strategy


@checked
class Node:
    """One node of a strategy tree; made when something is said at it. Calls chain."""

    __slots__ = ("_path", "_tree")

    def __init__(self, tree: Strategy, path: str) -> None:
        self._tree = tree
        self._path = path

    @property
    def path(self) -> str:
        """The dotted path, `layers.*.attn`."""
        return self._path

    def split(self, **axes: str | list[str] | tuple[str, ...] | None) -> Node:
        """Which dims each mesh axis cuts here: `split(tp="heads")`.

        A dim may also be said first: `split(heads="tp")` means the same. A
        list gives choices in order, the first that an op has is cut; None or
        an empty list: the axis cuts nothing here. A factor of an op's own
        rule is written after a dot, `split(tp=".k")`. Entries with a number
        are levels of the axis, outermost first: `split(tp=["heads|ffn/4", "seq/2"])`
        cuts eight ranks over heads or columns by four, and inside of these over
        the sequence by two; one may leave its number out.

        >>> from plancast.strategy import Strategy
        >>> tree = Strategy.parse("tp=4")
        >>> tree["layers.*.mlp"].split(tp=["ffn"]) and tree.to_dict()["nodes"]
        {'layers.*.mlp': {'split': {'tp': ['ffn']}}}
        """
        for name, value in axes.items():
            choices = [value] if isinstance(value, str) else value
            if not isinstance(choices, list | tuple | None):
                raise InputError(f"`{name}` is cut by `{value!r}`; name a dim, or list several.")
            values = [arguments.word(choice, name) for choice in choices or ()]
            if name not in _AXES and len(values) == 1 and values[0] in _AXES:
                name, values = values[0], [name]
            if name not in _AXES:
                wrong = [name, *values]
                hints = filter(None, (arguments.near(word, _AXES) for word in wrong))
                raise InputError(
                    f"no mesh axis among {arguments.listed(wrong)}; the axes are "
                    f"{arguments.listed(_AXES)}.{next(hints, '')}"
                )
            self._tree._core.split(self._path, name, values)
        return self

    def recompute(self, mode: str) -> Node:
        """What backward recomputes below: `none`, `full`, or sets of ops.

        `selective` is what the software profile says, `selective:WORD+WORD` the sets of
        `plancast.recompute_sets()`.
        """
        self._tree._core.recompute(self._path, arguments.word(mode, "recompute"))
        return self

    def on(self, **axes: int | str) -> Node:
        """Which ranks of an axis run the ops below; others have nothing of them.

        Args:
          axes: by axis (dp, cp, tp) a rank, or a part of the ranks: `"1/2"` is the second half.

        >>> from plancast.strategy import Strategy
        >>> tree = Strategy.parse("dp=4")
        >>> tree["wide"].on(dp=0) and tree["deep"].on(dp="1/2") and tree.to_dict()["nodes"]
        {'deep': {'on': {'dp': '1/2'}}, 'wide': {'on': {'dp': 0}}}
        """
        self._tree._core.on(self._path, {axis: str(ranks) for axis, ranks in axes.items()})
        return self

    def home(self, layout: str | None = None, **kinds: str) -> Node:
        """Where `weights`, `gradients`, optimizer `state` and kept `activations` below live.

        `replicate`, `shard(dp)`, `shard(dp,tp)`, `on(dp=3)` (rank 3 keeps all), `host` or
        `shard(dp)+host`; of activations `device`, `shard(tp)`, `host` or `on(pp=3)` (stage 3).
        A layout alone is the state's; docs/strategy.md says what follows for kinds that are
        not said.

        >>> from plancast.strategy import Strategy
        >>> tree = Strategy.parse("zero=1")
        >>> tree["layers.*"].home(weights="shard(dp)") and tree.to_dict()["nodes"]
        {'layers.*': {'home': {'weights': 'shard(dp)'}}}
        """
        kinds = kinds if layout is None else {"state": layout, **kinds}
        homes = {kind: arguments.word(home, kind) for kind, home in kinds.items()}
        self._tree._core.home(self._path, homes)
        return self

    def bucket(self, size: int) -> Node:
        """Size of the buckets in which gradients of parameters below are reduced, bytes."""
        self._tree._core.bucket(self._path, size)
        return self

    def unit(self, layers: int) -> Node:
        """How many neighbouring layers below are one unit of sharding.

        Args:
          layers: of a list, that are gathered together before they run, and whose gradients are
            reduced together.

        >>> from plancast.strategy import Strategy
        >>> tree = Strategy.parse("zero=3")
        >>> tree["layers[0:8]"].unit(4) and tree.to_dict()["nodes"]
        {'layers[0:8]': {'unit': 4}}
        """
        self._tree._core.unit(self._path, layers)
        return self

    def micro_batches(self, count: int, *, max_ongoing: int | None = None) -> Node:
        """Runs what is below in so many pieces of a micro-batch (or of a piece around it).

        Args:
          count: pieces; of the samples of a device, or of the sequence where these are fewer.
          max_ongoing: pieces that have gone forward and not yet back; with less than all, which
            only the end of the model can have, the others' results are never there at once.

        >>> from plancast.strategy import Strategy
        >>> tree = Strategy.parse("tp=8")
        >>> tree["head"].micro_batches(8, max_ongoing=1) and tree.to_dict()["nodes"]
        {'head': {'micro_batches': 8, 'max_ongoing': 1}}
        """
        most = [] if max_ongoing is None else [max_ongoing]
        self._tree._core.micro_batches(self._path, count, most)
        return self

    def communicate(
        self,
        *,
        rotate: Mapping[str, str | Sequence[str]] | None = None,
        pieces: Mapping[str, int] | None = None,
        **tensors: str,
    ) -> Node:
        """Tensors that ops below take in part by part, in a loop over a factor of theirs.

        Args:
          rotate: by loop the axes over which parts are handed from neighbour to neighbour; others
            are sent to all by who holds them.
          pieces: by loop the parts that each device cuts what it has into, in place of a part for
            each rank; collectives of results leave in as many.
          tensors: by tensor of the op's rule the loop; none: all that are gathered along one that
            `rotate` or `pieces` names.

        >>> from plancast.strategy import Strategy
        >>> tree = Strategy.parse("tp=8")
        >>> node = tree["product"].communicate(a="k", b="k", rotate={"k": "tp"})
        >>> tree.to_dict()["nodes"]
        {'product': {'communicate': {'a': 'k', 'b': 'k'}, 'rotate': {'k': ['tp']}}}
        """
        turns = {
            loop: [arguments.word(a, "rotate") for a in ([axes] if isinstance(axes, str) else axes)]
            for loop, axes in (rotate or {}).items()
        }
        self._tree._core.communicate(self._path, tensors, turns, dict(pieces or {}))
        return self

    def compute_at(self, op: str) -> Node:
        """Computes ops below where `op` reads them: they are one op, cut as `op` is.

        Borders that a stencil reads are then computed again on each device, from a wider border of
        what the first of the ops reads, and not communicated between the ops.

        >>> from plancast.strategy import Strategy
        >>> tree = Strategy.parse("tp=8")
        >>> tree["blur.rows"].compute_at("columns") and tree.to_dict()["nodes"]
        {'blur.rows': {'compute_at': 'columns'}}
        """
        self._tree._core.compute_at(self._path, arguments.word(op, "compute_at"))
        return self

    def rewrite(self, *rewrites: str) -> Node:
        """Changes how what the op here makes is communicated, and not what is computed.

        Args:
          rewrites: in order, `split(all_reduce)`, `reorder(all_gather, past: OPS)`,
            `fuse(OPS with COMMS)`, `overlap(OP, COMM, pieces: 8)` or `pieces: tuned`
            (docs/rewrites.md).

        >>> from plancast.strategy import Strategy
        >>> tree = Strategy.parse("dp=8")
        >>> node = tree["step.g"].rewrite("split(all_reduce)", "reorder(all_gather, past: update)")
        >>> tree.to_dict()["nodes"]
        {'step.g': {'rewrite': ['split(all_reduce)', 'reorder(all_gather, past: update)']}}
        """
        self._tree._core.rewrite(self._path, [arguments.word(r, "rewrite") for r in rewrites])
        return self

    def train(self, trains: bool = True) -> Node:
        """Whether the parameters below are trained; others have no gradient and no state.

        Args:
          trains: False freezes them.

        >>> from plancast.strategy import Strategy
        >>> tree = Strategy.parse("dp=8")
        >>> tree["embedding"].train(False) and tree.to_dict()["nodes"]
        {'embedding': {'train': False}}
        """
        self._tree._core.train(self._path, trains)
        return self

    def lora(
        self, *, rank: int, on: str | Sequence[str], dropout: float = 0.0, base: str | None = None
    ) -> Node:
        """Low-rank adapters beside products below; only they are trained.

        Args:
          rank: values between the two products of an adapter.
          on: names of ops, or their ends: `["qkv", "mlp.fc1"]`.
          dropout: share of the adapters' inputs that is dropped.
          base: `nf4` keeps frozen matrices of layers in 4 bits (QLoRA); None: as they are used.

        >>> from plancast.strategy import Strategy
        >>> tree = Strategy.parse("dp=8")
        >>> tree["layers.*"].lora(rank=16, on=["qkv", "proj"]) and tree.to_dict()["nodes"]
        {'layers.*': {'lora': {'rank': 16, 'on': ['qkv', 'proj']}}}
        """
        words = [arguments.word(op, "on") for op in ([on] if isinstance(on, str) else on)]
        self._tree._core.lora(self._path, rank, words, float(dropout), base or "")
        return self

    def explain(self, *, layers: int = 0) -> str:
        """Which node decided what here; `layers` as in `Strategy.explain`."""
        return self._tree.explain(self._path, layers=layers)

    def __repr__(self) -> str:
        return f"<Node {self._path}>"


_AXES = ("dp", "tp", "pp", "cp", "ep", "etp")
