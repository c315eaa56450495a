"""Small models and the command line for the tests of the Python face."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plancast as pc
import pytest
from plancast.cli.main import main

SMALL = {
    "name": "small",
    "layers": 4,
    "hidden": 512,
    "heads": 8,
    "ffn": 2048,
    "vocab": 1000,
    "seq": 256,
}


def measured_row(row_id: str, **fields: Any) -> dict[str, Any]:
    """A row of a table of measured runs: the small model on one host, with what `fields` say."""
    run = {
        "row_id": row_id,
        "source": "here",
        "group": "g",
        "model": "small",
        "layers": 4,
        "hidden": 512,
        "heads": 8,
        "kv_heads": 8,
        "ffn_hidden": 2048,
        "vocab": 1000,
        "mlp": "gelu",
        "norm": "layernorm",
        "position": "learned",
        "tied_embeddings": 1,
        "seq_len": 256,
        "machine": "dgx-a100-80g:1",
        "strategy": "dp=1,tp=8,mb=1,recompute=none,attn=flash",
        "global_batch": 8,
        "dtype": "bf16",
        "software": "Megatron-LM",
        "iter_time_s": 0.05,
    }
    return {**run, **fields}


@pytest.fixture
def small() -> pc.Model:
    return pc.Model.from_config(**SMALL)


@pytest.fixture
def small_file(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in SMALL.items()))
    return str(path)


@pytest.fixture
def large_file(tmp_path: Path) -> str:
    path = tmp_path / "large.yaml"
    sizes = {**SMALL, "layers": 96, "hidden": 12288, "heads": 96, "ffn": 49152}
    path.write_text("".join(f"{key}: {value}\n" for key, value in sizes.items()))
    return str(path)


class Cli:
    """Runs the command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        code = main(list(arguments))
        captured = self._capsys.readouterr()
        return code, captured.out, captured.err

    def json(self, *arguments: str) -> Any:
        code, out, err = self(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    def error(self, *arguments: str) -> str:
        """The one line of a refusal."""
        code, out, err = self(*arguments)
        assert code == 2, (code, out, err)
        assert out == ""
        assert err.startswith("plancast: ")
        assert err.count("\n") == 1, err
        assert "Traceback" not in err
        return err.removeprefix("plancast: ").rstrip("\n")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    return Cli(capsys)
