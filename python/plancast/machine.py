"""Machines: accelerators, hosts and the links between them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plancast import _core, arguments, documents, files
from plancast.checked import checked
from plancast.errors import InputError
from plancast.immutable import Immutable


@checked
class Machine(Immutable):
    """An immutable description of a cluster.

    >>> machine = Machine.preset("dgx-h100", hosts=2)
    >>> machine.devices, machine.gpus_per_host
    (16, 8)

    Machines are put together with `+`: the hosts of the first, then those of the second, as
    one network.

    >>> mixed = Machine.preset("dgx-a100-80g", hosts=2) + Machine.preset("dgx-h100", hosts=4)
    >>> mixed.name, mixed.devices, mixed.gpu
    ('dgx-a100-80g:2+dgx-h100:4', 48, 'A100-SXM-80GB+H100-SXM-80GB')
    """

    __slots__ = ("_core",)

    def __init__(self, core: _core.Machine) -> None:
        self._core = core

    @classmethod
    def preset(
        cls, name: str, *, hosts: int | None = None, gpus_per_host: int | None = None
    ) -> Machine:
        """A shipped machine: `dgx-h100`, or with sizes, `dgx-h100:16` or `dgx-h100:2x4`.

        `dgx-a100-80g:2+dgx-h100:4` is one machine of both.

        Args:
          name: one of `Machine.presets()`, or several with sizes joined by `+`.
          hosts: number of hosts; 1 unless the name says it.
          gpus_per_host: GPUs of each host that take part; all by default.
        """
        arguments.word(name, "name")
        if ":" in name and (hosts is not None or gpus_per_host is not None):
            raise InputError(f"`{name}` says its sizes already; drop `hosts` and `gpus_per_host`.")
        text = name
        if ":" not in name:
            text += f":{1 if hosts is None else hosts}"
            if gpus_per_host is not None:
                text += f"x{gpus_per_host}"
        return cls(_core.Machine.preset(text))

    @classmethod
    def presets(cls) -> list[str]:
        """Names of all shipped machines.

        >>> "dgx-a100-80g" in Machine.presets()
        True
        """
        return _core.Machine.preset_names()

    @classmethod
    def from_yaml(cls, text: str, *, what: str = "machine") -> Machine:
        """A machine from YAML text; `what` names the text in errors.

        >>> Machine.from_yaml("preset: dgx-h100\\nhosts: 4").devices
        32
        """
        return cls.from_dict(documents.parse_yaml(text, what), what=what)

    @classmethod
    def from_file(cls, path: str | Path) -> Machine:
        """A machine from a YAML or JSON file."""
        return cls.from_dict(files.read_mapping(path), what=f"`{path}`")

    @classmethod
    def from_nccl(cls, path: str | Path, *, hosts: int = 1, fabric: str = "") -> Machine:
        """`hosts` times what an NCCL topology file describes; `source` says what was assumed.

        Args:
          path: what `NCCL_TOPO_DUMP_FILE` wrote.
          hosts: how many such hosts (or NVLink domains).
          fabric: `infiniband`, `roce`, ...; by the names of the network devices if absent.
        """
        from plancast.communication import nccl_file

        core, assumed = nccl_file.machine(nccl_file.read(path), hosts, fabric)
        fields = cls(core).to_dict()
        fields["name"] = Path(path).stem
        fields["source"] = " ".join([f"{fields['source']} {path}.", *assumed])
        return cls.from_dict(fields, what=f"`{path}`")

    @classmethod
    def from_dict(cls, fields: dict[str, Any], *, what: str = "machine") -> Machine:
        """A machine from the fields of its YAML form."""
        return cls(_core.Machine.from_json(documents.to_json(fields, what), what))

    @classmethod
    def open(cls, text: str, *, hosts: int | None = None, fabric: str | None = None) -> Machine:
        """What `-c` on the command line means: a preset with sizes, or a file.

        `topo.xml` is an NCCL topology file of one host, `topo.xml:16` sixteen of them.

        Args:
          text: the words behind `-c`.
          hosts: of a topology file that does not say it itself.
          fabric: of a topology file; see `from_nccl`.
        """
        path, colon, count = text.rpartition(":")
        if not path.endswith(".xml"):
            path, colon, count = text, "", ""
        if path.endswith(".xml"):
            if colon and not count.isdecimal():
                raise InputError(f"`{text}` does not say how many hosts; write `{path}:16`.")
            if colon and hosts is not None:
                raise InputError(f"`{text}` says its hosts already; leave `--nodes {hosts}` out.")
            return cls.from_nccl(
                path, hosts=int(count) if colon else hosts or 1, fabric=fabric or ""
            )
        if hosts is not None:
            raise InputError(
                f"`--nodes` counts the hosts of an NCCL topology, and `{text}` is none; write "
                f"`PRESET:{hosts}`, or `hosts: {hosts}` in the machine file."
            )
        if fabric is not None:
            raise InputError(
                f"`--fabric` is of an NCCL topology, and `{text}` is none; presets have one, and "
                "machine files say `fabric:`."
            )
        if files.looks_like_file(text):
            return cls.from_file(text)
        try:
            return cls(_core.Machine.preset(text))
        except InputError:
            from plancast import machine_names
            from plancast.models import presets

            better = machine_names.instead(text)
            if better:
                raise InputError(better) from None
            if text not in presets.names():
                raise
            raise InputError(
                f"`{text}` is a model, and `-c` takes a machine. Write `-m {text}`, and the "
                "machine behind `-c`, such as `-c dgx-h100:2`."
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Every field of the YAML form."""
        fields: dict[str, Any] = json.loads(self._core.to_json())
        return fields

    def to_yaml(self) -> str:
        """YAML that `from_yaml` reads back into an equal machine.

        >>> machine = Machine.preset("dgx-h100")
        >>> Machine.from_yaml(machine.to_yaml()) == machine
        True
        """
        import yaml

        text: str = yaml.safe_dump(self.to_dict(), sort_keys=False)
        return text

    @property
    def name(self) -> str:
        """The preset's name, or the one its file gives."""
        return self._core.name

    @property
    def gpu(self) -> str:
        """Name of the accelerator, e.g. `H100-SXM-80GB`; several joined by `+`."""
        return self._core.gpu

    @property
    def devices(self) -> int:
        """Number of accelerators."""
        return self._core.devices

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self._core.hosts

    @property
    def gpus_per_host(self) -> int:
        """Accelerators of one host; 0 if hosts have different numbers of them."""
        return self._core.gpus_per_host

    @property
    def gpus_per_domain(self) -> int:
        """Accelerators joined by one NVLink domain, the smallest."""
        return self._core.gpus_per_domain

    @property
    def memory_bytes(self) -> float:
        """Memory of one accelerator, the smallest, bytes."""
        return self._core.memory_bytes

    @property
    def sections(self) -> list[Machine]:
        """The parts of a mixed machine with equal hosts, in order; else the machine alone."""
        return [Machine(core) for core in self._core.sections]

    def describe(self) -> str:
        """Hosts, accelerators and links as text, section by section.

        >>> print(Machine.preset("dgx-h100:2").describe().splitlines()[0])
        dgx-h100: 2 x 8 H100-SXM-80GB, nvswitch
        """
        return self._core.describe()

    def __add__(self, other: Machine) -> Machine:
        """Both as one machine: devices and hosts of `other` are counted on from this one's."""
        if not isinstance(other, Machine):
            return NotImplemented
        return Machine(_core.Machine.combine([self._core, other._core]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machine) and self._core.to_json() == other._core.to_json()

    def __hash__(self) -> int:
        return hash(self._core.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        return Machine.from_dict, (self.to_dict(),)

    def __repr__(self) -> str:
        hosts = " + ".join(f"{s.hosts} x {s.gpus_per_host} {s.gpu}" for s in self.sections)
        return f"<Machine {self.name}: {hosts}>"

    def __str__(self) -> str:
        return "+".join(f"{s.name}:{s.hosts}x{s.gpus_per_host}" for s in self.sections)
