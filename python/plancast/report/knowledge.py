"""How the figures of a forecast are known, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plancast.textual import percent

if TYPE_CHECKING:
    from plancast.forecast import Forecast

# Parts whose time is kernels, collectives, or follows from the simulation.
_KERNELS = ("compute", "recompute", "optimizer")
_EXPOSED = (
    "exposed_tp",
    "exposed_dp",
    "exposed_pp",
    "exposed_cp",
    "exposed_ep",
    "exposed_offload",
)


def beyond_kernels(forecast: Forecast) -> str:
    """What the forecast has from measured runs of its software; empty: nothing."""
    software = forecast.software()
    if not software["sources"]:
        return ""
    lineage = f" of the {software['lineage']} lineage" if software["lineage"] else ""
    return (
        f"{100 * forecast.beyond_simulated:+.1f} % beyond its kernels, "
        f"± {percent(software['relative_sigma'], 0)}: runs{lineage}, {software['sources']} sources"
    )


def how_known(forecast: Forecast) -> dict[str, str]:
    """For each part of the breakdown, where its figure comes from."""
    shares = sorted(forecast.knowledge().items(), key=lambda item: -item[1])
    kernels = ", ".join(
        name if share > 0.995 else f"{percent(share, 0)} {name}"
        for name, share in shares
        if share > 0.005
    )
    known = dict.fromkeys(forecast.breakdown(), "simulated")
    known.update(dict.fromkeys(_KERNELS, kernels or "analytic"))
    known.update(dict.fromkeys(_EXPOSED, "link curves, simulated"))
    known["launch"] = f"profile {forecast.profile}"
    known["other"] = f"profile {forecast.profile}"
    return known
