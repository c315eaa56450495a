"""How far forecasts are off once runs were learned from: rows drawn by hand."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace
from typing import Any

import pytest
from plancast.accuracy.validation.learning_curve import ALL, JOB, SOFTWARE, learning_curve
from plancast.accuracy.validation.residuals import ErrorTerms, Residual
from plancast.learned import Evidence

GPU = "H100-SXM-80GB"


def rows(source: str, group: str, slow: float, count: int = 8, experts: int = 0) -> list[Any]:
    draw = random.Random(group)
    found = []
    for i in range(count):
        gemm = 0.5 + 0.4 * draw.random()
        log = slow * gemm + draw.gauss(0, 0.01)
        shares = {f"{GPU}/gemm/bf16": (gemm, 0.2), "software/x": (1.0, 0.06)}
        terms = ErrorTerms("x", False, GPU, {f"{GPU}/gemm/bf16": (gemm, 0.1)}, 0.0, "pytorch")
        name = f"{group}{i}"
        found.append(
            SimpleNamespace(
                row=SimpleNamespace(source=source, group=group, seq_len=2048, experts=experts),
                measured=(1 + 0.1 * i) * math.exp(log),
                residual=Residual(name, source, log, terms),
                evidence=Evidence(name, GPU, log, shares),
            )
        )
    return found


def test_what_runs_share_is_learned_and_told_job_by_job_and_over_all():
    results = rows("here", "a", 0.3) + rows("here", "b", 0.3) + rows("there", "c", 0.0)
    curve = {(c.source, c.scope): c for c in learning_curve(results, 3)}
    slow, even = curve["here", JOB], curve["there", JOB]
    assert slow.jobs == 2 and slow.after < 0.4 * slow.before
    assert even.after < even.before + 0.02
    assert curve[ALL, JOB].jobs == 3
    assert curve[ALL, JOB].after == pytest.approx((2 * slow.after + even.after) / 3)
    assert slow.hindsight < slow.before
    assert even.hindsight < 0.02
    for c in curve.values():
        assert (c.regret_before is None) == (c.scope == SOFTWARE)
        assert c.regret_after is None or 0 <= c.regret_after <= c.regret_before + 1e-9


def test_small_jobs_and_mixtures_are_left_out():
    results = rows("here", "a", 0.1, count=5) + rows("moe", "b", 0.1, experts=8)
    scopes = {(c.source, c.scope) for c in learning_curve(results, 3)}
    assert scopes == {("moe", JOB), (ALL, JOB)}
    assert learning_curve([], 3) == []
