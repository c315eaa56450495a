"""What files say is read: never executed, no way to other folders, nothing that grows."""

from __future__ import annotations

import gzip
import json
import pickle
import resource
import sqlite3
import time
import zipfile
from pathlib import Path

import plancast as pc
import pytest
from conftest import Cli
from plancast.accuracy.validation.rows import _NEEDED
from plancast.accuracy.validation.run import validate
from plancast.communication.nccl import Topology
from plancast.records import Records
from plancast.report import markdown

EVIL = "x\x1b[2J\x1b]0;evil\x07\u202e\x9b31m<script>alert(1)</script>"
HIDDEN = ("\x1b", "\x07", "\u202e", "\x9b")
LAUNCH = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --bf16\n"


class _Payload:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):  # what `pickle` would run
        return Path.touch, (self.path,)


def _yaml(target: Path) -> str:
    return f"name: !!python/object/apply:os.system ['touch {target}']\n"


def _evil_files(folder: Path, target: Path) -> list[tuple[str, ...]]:
    """Command lines about files that would make `target` if what they say were run."""
    touch = f"touch {target}"
    texts = {
        "model.yaml": _yaml(target),
        "model.json": json.dumps({"name": "x", "mlp": f"__import__('os').system('{touch}')"}),
        "machine.yaml": _yaml(target),
        "tree.yaml": f"plan: mb=1\nnodes: !!python/name:os.system {{}}\nx: '$({touch})'\n",
        "jobs.yaml": "jobs: !!python/object/new:os.system ['" + touch + "']\n",
        "run.sh": f"A=$({touch})\nB=`{touch}`\n; {touch}\npython t.py {LAUNCH} --fp8 $(({touch}))",
        "run.toml": f"[parallelism]\ntensor_parallel_degree = '$({touch})'\n",
        "accelerate.yaml": _yaml(target),
        "topo.xml": f'<!DOCTYPE a SYSTEM "file://{target}"><system version="1">&a;</system>',
        "hosts.csv": f"time_h,hosts\n0,=cmd|'{touch}'!A1\n",
        "run.log": f"step: 1 tps: $({touch})\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    with zipfile.ZipFile(folder / "model.pt2", "w") as archive:
        archive.writestr("m/models/model.json", pickle.dumps(_Payload(target)))
        archive.writestr(f"../{target.name}", b"x")
        archive.writestr("m/data/sample_inputs/model.pt", pickle.dumps(_Payload(target)))
    (folder / "config.pt2").write_bytes(pickle.dumps(_Payload(target)))
    base = sqlite3.connect(folder / "kernels.db")
    base.execute("CREATE TABLE x (y)")
    base.execute("CREATE VIEW records AS SELECT load_extension('/tmp/x.so')")
    base.commit()
    base.close()
    plan = ("-m", "gpt2", "-c", "dgx-h100:1", "-s", "mb=1")
    return [
        *(("predict", "-m", m, "-c", "dgx-h100:1", "-s", "mb=1")
          for m in ("model.yaml", "model.json", "model.pt2", "config.pt2")),
        *(("predict", "-m", "gpt2", "-c", c, "-s", "mb=1") for c in ("machine.yaml", "topo.xml")),
        *(("predict", "-m", "gpt2", "-c", "dgx-h100:1", "-s", s)
          for s in ("tree.yaml", "run.sh", "run.toml", "accelerate.yaml")),
        ("import", "launch", "run.sh"),
        ("import", "launch", "accelerate.yaml"),
        ("cluster", "-c", "dgx-h100:2", "--jobs", "jobs.yaml"),
        ("spot", "-m", "gpt2", "-c", "dgx-h100:1", "--tokens", "1M", "--availability", "hosts.csv"),
        ("learn", "--log", "run.log", *plan),
        ("predict", *plan, "--records", "kernels.db"),
    ]  # fmt: skip


def test_nothing_a_file_says_is_executed(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    folder, target = tmp_path / "work", tmp_path / "made"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for line in _evil_files(folder, target):
        code, _, err = cli(*line)
        assert code in (0, 2), (line, err)
        assert "Traceback" not in err, (line, err)
        assert not target.exists(), line
    assert not (tmp_path / target.name).exists()


@pytest.mark.parametrize("name", ["../secret.csv", "/{}/secret.csv", "a/../../secret.csv"])
def test_no_path_outside_of_a_files_folder_is_read(cli: Cli, tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("stage,position,phase,micro_batch,chunk\n0,0,F,0,0\n0,1,B,0,0\n")
    folder = tmp_path / "work"
    folder.mkdir()
    name = name.format(str(tmp_path).strip("/"))
    tree = folder / "tree.yaml"
    tree.write_text(f"plan: 'mb=1,schedule={name}'\n")
    with pytest.raises(pc.InputError, match="outside of the folder"):
        pc.Strategy.open(str(tree))
    sizes = folder / "model.yaml"
    sizes.write_text(f"layers: 2\nhidden: 64\nheads: 4\nffn: 256\nvocab: 99\ndocuments: {name}\n")
    with pytest.raises(pc.InputError, match="outside of the folder"):
        pc.Model.open(str(sizes))
    system = folder / "system.json"
    system.write_text(json.dumps({"local-mem-bw": 50, "all-reduce-implementation-custom": [name]}))
    (folder / "net.yml").write_text(
        "topology: [Switch]\nnpus_count: [4]\nbandwidth: [400]\nlatency: [900]\n"
    )
    prefix = str(folder / "t")
    assert cli("export", "chakra", "--collective", "all_reduce", "--bytes", "1M", "--ranks", "4",
               "-o", prefix)[0] == 0  # fmt: skip
    message = cli.error("run", prefix, "--network", str(folder / "net.yml"), "--system",
                        str(system))  # fmt: skip
    assert "outside of the folder" in message


def test_a_report_holds_sections_of_pages_only(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("# a\nb\n")
    with pytest.raises(pc.InputError, match="no page"):
        markdown._section(tmp_path / "secret", "a")


def _bomb_xml(element: str) -> str:
    entities = '<!ENTITY a0 "aaaaaaaaaa">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12)
    )
    return (
        f'<?xml version="1.0"?><!DOCTYPE z [{entities}]><{element} name="&a11;">&a11;</{element}>'
    )


BOMBS = {
    "topology": (lambda p: Topology.from_file(p), ".xml", _bomb_xml("system")),
    "msccl": (lambda p: pc.Algorithm.open(p), ".xml", _bomb_xml("algo")),
    "aliases": (
        lambda p: pc.Machine.open(str(p)),
        ".yaml",
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)),
    ),
    "merges": (
        lambda p: pc.Machine.open(str(p)),
        ".yaml",
        "a0: &a0 {x: 1, y: 2}\n"
        + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], z{n}: 1}}\n" for n in range(1, 60)),
    ),
    "cycle": (lambda p: pc.Machine.open(str(p)), ".yaml", "a: &a [*a]\nb: &b {c: *b}\n"),
    "gzip": (pc.ChromeTrace.open, ".json", gzip.compress(b"[" + b" " * (300 << 20))),
}


@pytest.mark.parametrize("name", BOMBS)
def test_nothing_grows_without_bound(name: str, tmp_path: Path) -> None:
    read, suffix, text = BOMBS[name]
    path = tmp_path / f"bomb{suffix}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(pc.InputError):
        read(path)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < (700 << 10 if name == "gzip" else 64 << 10), f"{grown} KiB"
    assert time.process_time() - begin < 30


def _named(folder: Path) -> list[tuple[str, ...]]:
    """Command lines about files whose names of things are to be shown, not obeyed."""
    said = json.dumps(EVIL)
    span = {"ph": "X", "cat": EVIL, "name": EVIL, "pid": 0, "tid": 0, "ts": 1, "dur": 5}
    (folder / "chrome.json").write_text(json.dumps({"traceEvents": [span]}))
    (folder / "nccl.json").write_text(
        '[{"name": ' + said + ', "cat": "NET", "ph": "b", "id": 1, "pid": 0, "ts": 1},\n'
        '{"name": ' + said + ', "cat": "NET", "ph": "e", "id": 1, "pid": 0, "ts": 9},\n{}]'
    )
    (folder / "jobs.yaml").write_text(
        json.dumps({"jobs": [{"name": EVIL, "gpus": 8, "compute": 1, "iterations": 2}]})
    )
    (folder / "work.txt").write_text(
        f"MODEL\n1\n{EVIL.replace(' ', '')} -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\n"
    )
    (folder / "truth.csv").write_text("row_id,source\n" + EVIL + ",x\n")
    (folder / "log.txt").write_text(f"{EVIL}\n 8 2 float {EVIL} -1 1 1 1 0\n")
    (folder / "algo.xml").write_text(
        f'<algo name="{EVIL.encode("ascii", "xmlcharrefreplace").decode()}"/>'
    )
    (folder / "tree.yaml").write_text(json.dumps({"plan": "mb=1", "nodes": {EVIL: {}}}))
    (folder / "run.sh").write_text(LAUNCH.strip() + f" --{EVIL} {EVIL}\n")
    return [
        ("import", "chrome", "chrome.json"),
        ("import", "trace", "nccl.json"),
        ("cluster", "-c", "dgx-h100:2", "--jobs", "jobs.yaml"),
        ("import", "workload", "work.txt"),
        ("validate", "truth.csv"),
        ("learn", "truth.csv"),
        ("collective", "-c", "dgx-h100:1", "--against", "log.txt"),
        ("run", "algo.xml", "--bytes", "1M", "--topology", "ring:4"),
        ("predict", "-m", "gpt2", "-c", "dgx-h100:1", "-s", "tree.yaml"),
        ("import", "launch", "run.sh"),
        ("show", EVIL),
    ]  # fmt: skip


def test_names_in_files_are_shown_and_not_obeyed(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in _named(tmp_path):
        code, out, err = cli(*line)
        assert code in (0, 2), (line, err)
        for text in (out, err):
            assert not any(character in text for character in HIDDEN), (line, text[:500])


def test_a_store_with_a_view_in_place_of_a_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kernels.db"
    base = sqlite3.connect(path)
    base.execute("CREATE VIEW kernel AS SELECT 1")
    base.commit()
    base.close()
    with pytest.raises(pc.InputError):
        Records(path, create=False)


def test_a_refusal_quotes_no_whole_file() -> None:
    error = pc.InputError(f"`x.csv`:1: `{'9' * 100_000}` is no number. Write one.")
    assert len(str(error)) < 5000
    assert str(error).startswith("`x.csv`:1: ")
    assert str(error).endswith("is no number. Write one.")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_table_of_one_line_is_refused_before_it_is_copied(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text(",".join(_NEEDED) + "\n" + "1," * (3 << 20))
    with pytest.raises(pc.InputError, match=":2 is longer than 4 MiB"):
        validate([path])
