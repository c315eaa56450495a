"""The files that command lines name, before they are changed."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

from plancast import Algorithm, Machine, _core
from plancast.communication.nccl import Topology

from tests.fuzz import learned_runs, targets

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
HOSTS = """\
time_h,hosts
0,2
1,1
2.5,2
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
# What `calibrate` reads: a folder of measured kernels, and one of figures and collectives.
MEASURED = {
    "hardware.csv": """\
gpu,vendor,sm_count,boost_mhz,fp32_tflops,tf32_tflops,fp16_tflops,bf16_tflops,fp8_tflops,\
fp4_tflops,mem_gbps,l2_mb,tdp_w
H100-SXM-80GB,NVIDIA,132,1830,67,494,989,989,1979,,3350,50,700
""",
    "kernels/gemm.csv": """\
gpu,m,n,k,batch,dtype,layout,time_us,timing,source
"""
    + "".join(
        f"H100-SXM-80GB,{64 + 32 * row},4096,4096,1,bf16,TN,{20 + row},graph,aic\n"
        for row in range(120)
    ),
    "kernels/attention.csv": """\
gpu,impl,phase,batch,q_len,kv_len,heads,kv_heads,head_dim,head_dim_v,dtype,causal,window,time_us
"""
    + "".join(
        f"H100-SXM-80GB,cudnn,train_fwd,{1 + row},1024,1024,8,8,64,64,bf16,1,0,{33 + row}\n"
        for row in range(24)
    ),
    "kernels/elementwise.csv": """\
gpu,op,phase,rows,cols,elements,dtype,time_us,source,software,timing
H100-SXM-80GB,rmsnorm,fwd,4096,4096,16777216,bf16,33.5,aic,torch,graph
H100-SXM-80GB,layernorm,bwd,8192,4096,33554432,bf16,99.5,aic,torch,graph
""",
    "kernels/conv.csv": """\
gpu,batch,in_h,in_w,in_c,out_c,kh,kw,stride,out_h,out_w,dtype,phase,time_us,source
H100-SXM-80GB,16,56,56,64,64,3,3,1,56,56,fp32,fwd,30,deepbench
""",
    "kernels/moe.csv": """\
gpu,op,phase,dtype,groups,group_m,n,k,time_us,software,source
H100-SXM-80GB,grouped_gemm,fwd,bf16,8,512,4096,4096,100,Transformer Engine,simumax
H100-SXM-80GB,fused_moe_ffn,fwd,bf16,,,,,100,sglang,aic
""",
    "kernels/collective.csv": """\
system,gpus,nodes,collective,bytes,dtype,time_us,software,source
h100_sxm,8,1,all_reduce,1048576,fp16,33.5,NCCL 2.27.3,aic
a100_sxm,2,1,all_gather,512,fp16,8.98,NCCL 2.27.3,aic
""",
}
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
        "hosts.csv": HOSTS,
        "attention.csv": ATTENTION,
        "run.json": json.dumps(RUN),
        "truth.csv": TRUTH,
        "template.md": TEMPLATE,
        "ours.learned": learned_runs.seed(),
        "kineto.json": learned_runs.trace(),
        "ring.xml": Algorithm.make("all_reduce", "ring", gpus=4).to_msccl(),
        "topo.xml": Topology.from_machine(Machine.preset("dgx-a100-80g")).to_xml(),
    }
    texts |= {f"measured/{name}": text for name, text in MEASURED.items()}
    (folder / "measured" / "kernels").mkdir(parents=True, exist_ok=True)
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
