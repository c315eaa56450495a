"""Predicts one training step of GPT-3 175B on 64 A100s and writes a trace.

python examples/predict.py [TRACE.json]
"""

import sys

import plancast as pc
from rich import print as show

forecast = pc.predict(
    pc.Model.preset("gpt3-175b"),
    pc.Machine.preset("dgx-a100-80g", hosts=8),
    pc.Strategy.parse("tp=8,pp=8,vpp=3,mb=1,sp,recompute=selective,attn=unfused"),
    batch=64,
    dtype="fp16",
    profile="megatron-2021",
    timeline=True,
)
show(forecast)
print(f"published 13.75 s (Korthikanti et al. 2022), forecast {forecast.iteration_time:.2f} s")

if len(sys.argv) > 1:
    forecast.to_perfetto(sys.argv[1])
    print(f"wrote {sys.argv[1]}; open it at https://ui.perfetto.dev")
