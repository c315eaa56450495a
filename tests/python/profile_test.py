"""`plancast profile`, with a recorded run in place of a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import plancast as pc
import pytest
from plancast.profiling import Timing, UnmeasurableError, profile
from plancast.profiling.grid import default_grid, kernels_of_plan
from plancast.profiling.images import images_of
from plancast.profiling.replay import ReplayBackend
from plancast.records import Kernel, Records

# Made by scaling the shipped models' times: synthetic, as the file says.
RUN = Path(__file__).with_name("data") / "profile_run.json"
PLAN = ["-m", "llama3-8b", "-c", "dgx-h100:1", "-s", "tp=8,mb=1", "--batch", "8"]


def plan_kernels() -> list[Kernel]:
    return kernels_of_plan(
        pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-h100"), "tp=8,mb=1", batch=8
    )


def contents(path: Path) -> list[tuple[str, list[float]]]:
    return sorted((str(r.kernel), [s.seconds for s in r.samples]) for r in Records(path).select())


def test_measures_what_a_plan_needs(cli, tmp_path):
    store = tmp_path / "kernels.db"
    answer = cli.json("profile", *PLAN, "--replay", str(RUN), "-o", str(store))
    assert (answer["gpu"], answer["library"]) == ("H100-SXM-80GB", "torch")
    recorded = set(ReplayBackend(RUN).kernels)
    assert answer["measured"] == sum(kernel in recorded for kernel in plan_kernels()) > 20
    assert answer["measured"] + sum(answer["unmeasurable"].values()) == len(plan_kernels())
    # A prediction with the store knows these kernels as measured.
    forecast = cli.json("predict", *PLAN, "--records", str(store))
    shipped = cli.json("predict", *PLAN)
    assert forecast["iteration_time_s"] != shipped["iteration_time_s"]
    assert forecast["provenance"] != shipped["provenance"]
    code, out, _ = cli("profile", *PLAN, "--replay", str(RUN), "-o", str(store))
    assert code == 0
    assert "0 kernels measured on H100-SXM-80GB with torch" in out
    assert cli.json("profile", *PLAN, "--replay", str(RUN), "-o", str(store), "--again")["measured"]


class Interrupted:
    """A backend whose machine goes down after some kernels."""

    def __init__(self, after: int) -> None:
        self._run = ReplayBackend(RUN)
        self._left = after
        self.gpu, self.library = self._run.gpu, self._run.library
        self.version, self.source, self.date = (
            self._run.version,
            self._run.source,
            self._run.date,
        )

    def measure(self, kernel: Kernel) -> Timing:
        if self._left == 0:
            raise KeyboardInterrupt
        self._left -= 1
        return self._run.measure(kernel)


def test_a_run_that_was_cut_short_goes_on_where_it_stopped(tmp_path):
    kernels = plan_kernels()
    whole = tmp_path / "whole.db"
    profile(kernels, ReplayBackend(RUN), Records(whole))
    for after in (0, 1, 7, 20):
        path = tmp_path / f"after{after}.db"
        with pytest.raises(KeyboardInterrupt):
            profile(kernels, Interrupted(after), Records(path))
        resumed = profile(kernels, ReplayBackend(RUN), Records(path))
        assert resumed.known + resumed.measured == len(Records(whole))
        assert contents(path) == contents(whole)


def test_a_command_that_was_stopped_is_resumed_by_itself(cli, tmp_path, monkeypatch):
    whole, stopped = tmp_path / "whole.db", tmp_path / "stopped.db"
    cli("profile", *PLAN, "--replay", str(RUN), "-o", str(whole))
    measure = ReplayBackend.measure
    done = []

    def stops(self: ReplayBackend, kernel: Kernel) -> Timing:
        done.append(kernel)
        if len(done) % 9 == 0:
            raise KeyboardInterrupt
        return measure(self, kernel)

    monkeypatch.setattr(ReplayBackend, "measure", stops)
    codes = []
    while not codes or codes[-1] != 0:
        codes.append(cli("profile", *PLAN, "--replay", str(RUN), "-o", str(stopped))[0])
        assert len(codes) < 20
    assert codes[0] == 130
    assert contents(stopped) == contents(whole)


def test_tables_come_back_as_the_records_that_they_were(cli, tmp_path):
    store, folder = tmp_path / "kernels.db", tmp_path / "csv"
    cli("profile", *PLAN, "--replay", str(RUN), "-o", str(store), "--csv", str(folder))
    header = (folder / "gemm.csv").read_text().splitlines()[0]
    assert header.startswith(
        "gpu,m,n,k,batch,dtype,layout,time_us,tflops,time_us_min,time_us_max,n_meas,op,software,"
        "timing,thinned,source"
    )
    again = tmp_path / "again.db"
    cli("records", "ingest", str(folder), "-o", str(again))
    expected, found = contents(store), contents(again)
    assert [kernel for kernel, _ in found] == [kernel for kernel, _ in expected]
    for (_, ours), (_, theirs) in zip(found, expected, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-12)
    where = {"gpu": "H100-SXM-80GB", "library": "torch", "version": "2.5.1"}
    kernel = next(k for k in plan_kernels() if k.op == "gemm")
    assert Records(again).query(kernel, **where) is not None


def test_grids_and_plans_are_listed_without_a_gpu(cli):
    listed = cli.json("profile", "--dry-run", "-o", "unused.db")
    assert len(listed) == len(default_grid())
    code, out, _ = cli("profile", "--dry-run", *PLAN, "-o", "unused.db")
    assert code == 0
    assert out.splitlines()[-1] == f"{len(plan_kernels())} kernels"
    assert not Path("unused.db").exists()


def test_convolutions_find_their_images():
    kernels = [k for k in default_grid() if k.op == "convolution"]
    assert kernels
    assert all(images_of(kernel) is not None for kernel in kernels)
    assert images_of(Kernel.convolution(
        batch=4, in_size=(17, 17), in_channels=128, out_channels=192, window=(1, 7)
    )) is not None  # fmt: skip


def test_what_is_missing_is_told(cli, tmp_path):
    store = str(tmp_path / "kernels.db")
    try:
        import torch
    except ImportError:
        assert "pip install torch" in cli.error("profile", "-o", store)
        assert not Path(store).exists()
    else:
        if not torch.cuda.is_available():
            assert "needs a GPU" in cli.error("profile", "-o", store)
    assert "Give -m, -c and -s" in cli.error("profile", "-o", store, "-m", "llama3-8b")
    bad = tmp_path / "bad.json"
    bad.write_text('{"gpu": "T4"}')
    assert "no recorded run" in cli.error("profile", "-o", store, "--replay", str(bad))


def test_a_kernel_that_cannot_be_timed_is_counted(tmp_path):
    class Refuses(ReplayBackend):
        def measure(self, kernel: Kernel) -> Timing:
            raise UnmeasurableError("too large")

    result = profile(plan_kernels(), Refuses(RUN), Records(tmp_path / "k.db"))
    assert result.unmeasurable == {"too large": len(plan_kernels())}


def test_the_recorded_run_says_that_it_is_synthetic():
    assert "synthetic" in json.loads(RUN.read_text())["source"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"version": 1}, "`version` is `1`; give text"),
        ({"gpu": None}, "`gpu` is `None`"),
        ({"kernels": 3}, "is no recorded run"),
        ({"kernels": [{"op": 1}]}, "it has no field 'shape'"),
    ],
    ids=lambda value: None if isinstance(value, str) else "+".join(value),
)
def test_a_recorded_run_of_other_values_is_refused(tmp_path, changed, said):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(json.loads(RUN.read_text()) | changed))
    with pytest.raises(pc.InputError) as error:
        ReplayBackend(path)
    assert str(path) in str(error.value)
    assert said in str(error.value)
