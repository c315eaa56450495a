"""The files that command lines name, before they are changed."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

from plancast import Algorithm, Machine, _core
from plancast.nccl import Topology

from tests.fuzz import targets

NATIVE = Path(__file__).with_name("native") / "corpus"
FIXTURES = targets.LAUNCH

MACHINE = """\
name: mine
gpu: {like: H100-SXM-80GB, usd_per_hour: 2.5}
hosts: 2
gpus_per_host: 2
intra_link: nvlink4
intra_gb_per_s: 450
nics_per_host: 2
nic_gbit_per_s: 400
fabric: infiniband
device_overrides: [{device: 1, compute_scale: 0.9}]
"""
STRATEGY = """\
plan: tp=2,mb=1
nodes:
  layers.*: {recompute: full}
"""
GEMM = """\
gpu,m,n,k,batch,dtype,layout,time_us,n_meas,op,software,timing,source
H100-SXM-80GB,128,4096,4096,1,bf16,TN,20.5,3,linear,torch 2.5,graph,mine
H100-SXM-80GB,256,4096,4096,1,bf16,TN,22.5,3,linear,torch 2.5,graph,mine
"""
ATTENTION = """\
gpu,software,phase,batch,q_len,kv_len,heads,kv_heads,head_dim,head_dim_v,dtype,causal,window,time_us
H100-SXM-80GB,torch 2.5,train_fwd,1,1024,1024,8,8,64,64,bf16,1,0,33.5
"""
RUN = {
    "gpu": "H100-SXM-80GB", "library": "torch", "version": "2.5", "source": "x",
    "date": "2026-01-01",
    "kernels": [
        {
            "op": "gemm", "shape": "batch=1 m=64 n=64 k=64", "dtype": "bf16", "layout": "forward",
            "seconds": 1e-5, "seconds_min": 9e-6, "seconds_max": 2e-5, "repetitions": 5,
            "how": "graph",
        }
    ],
}  # fmt: skip
TRUTH = """\
row_id,source,model,layers,hidden,heads,ffn_hidden,vocab,mlp,norm,position,seq_len,machine,\
strategy,global_batch,dtype,software,iter_time_s,mfu
a,mine,gpt,2,64,4,256,1000,gelu,layernorm,learned,32,dgx-h100:1,"dp=8,mb=1",8,bf16,Megatron-LM,0.5,
"""
TEMPLATE = "# Scores\n\n{{table sources}}\n\n{{table worst}}\n"


def write(folder: Path) -> None:
    """Writes every seed under its name."""
    texts = {
        "machine.yaml": MACHINE,
        "tree.yaml": STRATEGY,
        "small.yaml": targets.FIELDS,
        "config.json": json.dumps(targets.CONFIG),
        "log.txt": targets.NCCL_TESTS,
        "gemm.csv": GEMM,
        "attention.csv": ATTENTION,
        "run.json": json.dumps(RUN),
        "truth.csv": TRUTH,
        "template.md": TEMPLATE,
        "ring.xml": Algorithm.make("all_reduce", "ring", gpus=4).to_msccl(),
        "topo.xml": Topology.from_machine(Machine.preset("dgx-a100-80g")).to_xml(),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    for name in ("llama3_8b.toml", "ds_zero3.json", "accelerate_fsdp2.yaml", "mpt_7b.yaml"):
        shutil.copy(FIXTURES / name, folder / name)
    shutil.copy(FIXTURES / "mixtral_8x7b.sh", folder / "mixtral_8x7b.sh")
    for name, seed in (
        ("network.yml", "astra_network/lines.yml"),
        ("system.json", "astra_system/all.json"),
        ("groups.json", "astra_comm_groups/two.json"),
        ("cases.csv", "astra_cases/two.csv"),
        ("nccl.json", "nccl_trace/" + sorted(p.name for p in (NATIVE / "nccl_trace").iterdir())[0]),
    ):
        shutil.copy(NATIVE / seed, folder / name)
    trace = bytes(_core.microbenchmark_trace("all_reduce", 4, 1 << 20))
    for rank in range(4):
        (folder / f"trace.{rank}.et").write_bytes(trace)
    graph = (targets.CORPUS / "block.pt2.json").read_text()
    with zipfile.ZipFile(folder / "block.pt2", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("block/models/model.json", graph, zipfile.ZIP_STORED)
    store = folder / "kernels.db"
    store.unlink(missing_ok=True)
    from plancast.records import Records

    Records(store).ingest(folder / "gemm.csv")
