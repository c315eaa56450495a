"""Lays one module out by hand and asks which node of the tree decided what.

The plan splits attention and the feed-forward layer over `tp`, as Megatron
does. Below, the feed-forward layer is left whole instead: its communication
goes away and its work is done by every rank.
"""

import plancast as pc

model = pc.Model.preset("llama3-8b", seq=4096)
machine = pc.Machine.preset("dgx-h100", hosts=1)

plain = pc.Strategy.parse("tp=8,mb=1,recompute=none")
whole = plain.copy()
whole["layers.*.mlp"].split(tp=None)

print(whole.explain("layers.*.mlp.fc1"))
print()
session = pc.Session()
for name, strategy in (("Megatron's split", plain), ("feed-forward layer whole", whole)):
    forecast = pc.predict(model, machine, strategy, batch=8, session=session)
    parts = forecast.breakdown()
    print(
        f"{name:26} {forecast.iteration_time * 1e3:8.1f} ms  "
        f"kernels {parts['compute'] * 1e3:8.1f} ms  exposed tp {parts['exposed_tp'] * 1e3:6.1f} ms"
    )
