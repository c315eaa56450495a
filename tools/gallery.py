"""Draws the pictures of docs/questions and of runs (`make gallery`); needs Debian's chromium."""

from __future__ import annotations

import html
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plancast as pc

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
CLUSTERS = PICTURES.parent.parent / "examples" / "clusters"
# Hosts that come and go, in docs/training_runs.md.
HOSTS = "time_h,hosts\n0,16\n5,12\n9,16\n26,7\n31,16\n"
PLAN = "tp=2,sp,pp=2,zero=1,mb=1,recompute=selective"
_PAGE = """<!DOCTYPE html><meta charset="utf-8">{plotly}
<body><div id="drawn">{figure}</div><pre id="svg"></pre><script>
Plotly.toImage(document.querySelector(".plotly-graph-div"), {{format: "svg", width: {width},
  height: {height}}}).then(url => {{
  document.getElementById("svg").textContent = decodeURIComponent(url.slice(url.indexOf(",") + 1));
}});
</script></body>"""


def main() -> int:
    """Draws the pictures named, or all."""
    model, machine = pc.Model.preset("llama3-8b"), pc.Machine.preset("dgx-h100", hosts=2)
    session = pc.Session()
    forecast = pc.predict(model, machine, PLAN, batch=64, timeline=True, session=session)
    ranking = pc.rank(model, machine, batch=64, space="mb=1|2,vpp=1", session=session)
    most_tp = max(ranking, key=lambda plan: int(plan.chosen["tp"]))
    step = pc.predict(model, machine, PLAN, batch=24, timeline=True, session=session)
    pictures: dict[str, Callable[[], Any]] = {
        "question-time": forecast.plot_breakdown,
        "question-timeline": step.plot_timeline,
        "question-memory": forecast.plot_memory,
        "question-plans": ranking.plot_plans,
        "question-best": ranking.plot_breakdown,
        "question-why": pc.compare(ranking[0], most_tp).plot_breakdown,
        "question-what-helps": lambda: pc.sensitivities(
            model, machine, PLAN, batch=64, session=session
        ).plot_gains(),
        "question-network": pc.collective(machine, "all_reduce").plot_bandwidth,
        "question-machines": lambda: pc.size(model, tokens="1T", days=30).plot_options(),
        "spot-hosts": lambda: pc.spot(
            model, machine, pc.Availability.parse(HOSTS), tokens="150B", batch=512
        ).plot_hosts(),
        "cluster-links": lambda: shared_pods().plot_links(),
    }
    wanted = sys.argv[1:] or list(pictures)
    for name in wanted:
        (PICTURES / f"{name}.svg").write_text(svg(pictures[name]()))
        print(f"docs/pictures/{name}.svg")
    return 0


def shared_pods() -> pc.ClusterOutcome:
    """The outcome of the longer example of docs/cluster.md."""
    from plancast.clusters import job_file

    read = job_file.read(str(CLUSTERS / "shared-pods.yaml"))
    machine = pc.Machine.open(str(CLUSTERS / "oversubscribed.yaml"))
    return pc.cluster(read.jobs, machine, **read.settings)


def svg(figure: Any) -> str:
    """What plotly draws in a browser."""
    from plotly.offline import get_plotlyjs

    height = int(figure.layout.height or 420)
    page = _PAGE.format(
        plotly=f"<script>{get_plotlyjs()}</script>",
        figure=figure.to_html(full_html=False, include_plotlyjs=False),
        width=1000,
        height=height,
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "figure.html")
        file.write_text(page)
        browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu"]
        done = subprocess.run(
            [*browser, "--virtual-time-budget=20000", "--dump-dom", file.as_uri()],
            capture_output=True,
            text=True,
            check=True,
        )
    found = re.search(r'<pre id="svg">(.*?)</pre>', done.stdout, re.DOTALL)
    if found is None or not found.group(1):
        raise SystemExit("gallery: the browser drew nothing")
    text = html.unescape(found.group(1))
    # Names that plotly draws at random would make every run another file.
    for number, name in enumerate(
        dict.fromkeys(re.findall(r"(?:clip|legend|topdefs-|defs-)([0-9a-f]{6})", text))
    ):
        text = text.replace(name, f"{number:06x}")
    return text + "\n"


if __name__ == "__main__":
    sys.exit(main())
