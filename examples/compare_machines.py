"""Ranks plans for Llama 3 70B on two machines and compares the best of each."""

import plancast as pc
from rich import print as show

model = pc.Model.preset("llama3-70b", seq=8192)
session = pc.Session()

best = []
for preset in ("dgx-a100-80g", "dgx-h100"):
    machine = pc.Machine.preset(preset, hosts=8)
    ranking = pc.rank(
        model,
        machine,
        batch=128,
        space="tp=4|8,pp=2|4|8,vpp=1,mb=1,recompute=none|full,zero=1",
        session=session,
    )
    print(f"{preset}: {ranking.evaluated} plans, best {ranking[0].strategy}")
    best.append(ranking[0])

show(pc.compare(*best))
