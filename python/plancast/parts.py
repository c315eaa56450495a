"""The parts of an iteration, which partition the time of the compute stream."""

from __future__ import annotations

# The parts of the iteration time, in the order of reports.
PARTS = (
    "compute",
    "recompute",
    "exposed_tp",
    "exposed_dp",
    "exposed_pp",
    "exposed_cp",
    "exposed_ep",
    "exposed_offload",
    "bubble",
    "straggler",
    "launch",
    "optimizer",
    "other",
)

# Parts of the breakdown in words.
WORDS = {
    "compute": "compute",
    "recompute": "recomputation",
    "exposed_tp": "exposed tensor-parallel communication",
    "exposed_dp": "exposed data-parallel communication",
    "exposed_pp": "exposed pipeline messages",
    "exposed_cp": "exposed context-parallel communication",
    "exposed_ep": "exposed expert-parallel communication",
    "exposed_offload": "exposed offload copies",
    "bubble": "pipeline bubble",
    "straggler": "waiting for slower peers",
    "launch": "waiting for the host",
    "optimizer": "optimizer step",
    "other": "everything else",
}
