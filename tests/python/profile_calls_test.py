"""What torch is called with, run on the host; needs torch (make test-torch)."""

from __future__ import annotations

import contextlib
import time
from types import SimpleNamespace

import pytest
from plancast.profiling.backend import UnmeasurableError
from plancast.profiling.calls import Calls
from plancast.profiling.images import images_of
from plancast.profiling.torch_backend import TorchBackend
from plancast.records import Kernel

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def calls():
    torch.manual_seed(0)
    return Calls(torch, device="cpu")


def shape_of(result) -> tuple[int, ...]:
    return tuple(result.shape)


@pytest.mark.parametrize("which", ["forward", "dgrad", "wgrad"])
@pytest.mark.parametrize("batch", [1, 3])
def test_products_have_the_shape_of_the_kernel(calls, which, batch):
    made = calls.of(Kernel.gemm(16, 24, 8, batch=batch, which=which))()
    assert shape_of(made) == ((16, 24) if batch == 1 else (batch, 16, 24))
    assert made.dtype == torch.bfloat16


def test_sums_in_fp32_are_added_to(calls):
    kernel = Kernel.gemm(16, 24, 8, dtype="fp32", which="wgrad", accumulate_fp32=True)
    call = calls.of(kernel)
    first = call().clone()
    assert torch.allclose(call(), 2 * first, atol=1e-4) or not torch.allclose(call(), first)


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_attention_forward_and_backward(calls, kv_heads):
    sizes = {"batch": 2, "heads": 4, "kv_heads": kv_heads, "q_len": 32, "head_dim": 16}
    assert shape_of(calls.of(Kernel.attention(**sizes))()) == (2, 4, 32, 16)
    gradients = calls.of(Kernel.attention(**sizes, backward=True))()
    assert [shape_of(g) for g in gradients] == [
        (2, 4, 32, 16),
        (2, kv_heads, 32, 16),
        (2, kv_heads, 32, 16),
    ]


@pytest.mark.parametrize(("window", "stride"), [(1, 1), (3, 1), (3, 2), (1, 2), (7, 2)])
@pytest.mark.parametrize("channels_last", [True, False])
def test_convolutions_and_their_gradients(calls, window, stride, channels_last):
    for which in ("forward", "dgrad", "wgrad"):
        kernel = Kernel.convolution(
            batch=2,
            in_size=(28, 28),
            in_channels=8,
            out_channels=12,
            window=(window, window),
            stride=stride,
            which=which,
            channels_last=channels_last,
            dtype="fp32",
        )
        images = images_of(kernel)
        made = calls.of(kernel)()
        if which == "forward":
            assert shape_of(made) == (images.batch, 12, *images.out_size)
        else:
            wanted = [(images.batch, 8, *images.in_size), (12, 8, window, window)]
            assert shape_of(made[which == "wgrad"]) == wanted[which == "wgrad"]


@pytest.mark.parametrize(
    "rule",
    [
        "rms_norm",
        "layer_norm",
        "rms_norm.bwd",
        "layer_norm.bwd",
        "softmax",
        "embedding",
        "cast",
        "residual_add",
        "swiglu",
        "swiglu.bwd",
        "zero_grad",
        "merge_heads",
    ],
)
def test_memory_kernels_run(calls, rule):
    read = 0 if rule == "zero_grad" else 1 << 18
    calls.of(Kernel.memory(rule, read_bytes=read, write_bytes=1 << 17))()


def test_the_optimizer_steps(calls):
    kernel = Kernel.memory(
        "adam", read_bytes=16 * 1000, write_bytes=14 * 1000, dtype="fp32", optimizer=True
    )
    calls.of(kernel)()


def test_what_torch_has_no_call_for_is_said(calls):
    with pytest.raises(UnmeasurableError, match="no torch call is known for rule `fft`"):
        calls.of(Kernel.memory("fft", read_bytes=1, write_bytes=1))
    with pytest.raises(UnmeasurableError, match="products in nvfp4"):
        calls.of(Kernel.gemm(16, 16, 16, dtype="nvfp4"))


class HostEvent:
    """An event of the host's clock."""

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, other: HostEvent) -> float:
        return 1e3 * (other.at - self.at)


class Captures:
    """In place of a CUDA graph: runs what is captured once; or refuses."""

    refuses = False

    def replay(self) -> None:
        pass


@contextlib.contextmanager
def capture(graph: Captures):
    if graph.refuses:
        raise RuntimeError("operation not permitted when stream is capturing")
    yield


@pytest.fixture
def host_as_gpu(monkeypatch):
    stream = SimpleNamespace(wait_stream=lambda other: None)
    fakes = {
        "is_available": lambda: True,
        "current_device": lambda: 0,
        "get_device_name": lambda: "NVIDIA H200",
        "get_device_properties": lambda device: SimpleNamespace(L2_cache_size=1 << 20),
        "clock_rate": lambda: 1980,
        "empty_cache": lambda: None,
        "mem_get_info": lambda: (1 << 30, 1 << 30),
        "Stream": lambda: stream,
        "current_stream": lambda: stream,
        "stream": lambda s: contextlib.nullcontext(),
        "synchronize": lambda: None,
        "Event": HostEvent,
        "CUDAGraph": Captures,
        "graph": capture,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(TorchBackend, "device", "cpu")


@pytest.mark.parametrize(("refuses", "how"), [(False, "graph"), (True, "event")])
def test_the_backend_times_with_and_without_graphs(host_as_gpu, monkeypatch, refuses, how):
    monkeypatch.setattr(Captures, "refuses", refuses)
    backend = TorchBackend()
    assert (backend.gpu, backend.library) == ("H200-SXM", "torch")
    assert backend.source == "plancast profile, SM clock 1980 MHz"
    timing = backend.measure(Kernel.gemm(64, 64, 64, dtype="fp32"))
    assert 0 < timing.seconds_min <= timing.seconds <= timing.seconds_max
    assert timing.how == how
    assert 20 <= timing.repetitions <= 200
    with pytest.raises(UnmeasurableError, match="more memory than is free"):
        backend.measure(Kernel.gemm(1 << 16, 1 << 16, 1 << 16))


def test_an_unknown_gpu_asks_for_its_name(host_as_gpu, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H20")
    from plancast.errors import InputError

    with pytest.raises(InputError, match="--gpu H100-SXM-80GB"):
        TorchBackend()
    assert TorchBackend("H100-SXM-80GB").gpu == "H100-SXM-80GB"
