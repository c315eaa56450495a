"""What runs of a software take beyond its kernels, learned from rows drawn from the belief."""

from __future__ import annotations

import random

import pytest
from plancast.accuracy.validation.levels import centred, fit_levels
from plancast.accuracy.validation.residuals import ErrorTerms, Residual


def terms(profile: str, lineage: str | None, device: str = "gpu") -> ErrorTerms:
    return ErrorTerms(profile, False, device, {}, 0.0, lineage)


def rows(source: str, value: float, profile: str, lineage: str | None = "a", *, count: int = 5):
    return [
        Residual(f"{source}-{profile}-{i}", source, value, terms(profile, lineage))
        for i in range(count)
    ]


def test_what_all_sources_share_is_found():
    residuals = [r for s in range(30) for r in rows(f"s{s}", 0.1, f"p{s}")]
    levels = fit_levels(residuals)
    assert levels.of(terms("new", "a")) == pytest.approx(0.1, abs=0.01)
    # Less is known of a lineage that has not been seen: part of it may be this one's.
    assert 0.05 < levels.of(terms("new", "b")) < 0.1


def test_a_software_without_runs_is_like_its_lineage():
    slow = [r for s in range(8) for r in rows(f"slow{s}", 0.2, f"slow-{s}", "slow")]
    fast = [r for s in range(8) for r in rows(f"fast{s}", 0.0, f"fast-{s}", "fast")]
    levels = fit_levels(slow + fast)
    assert levels.of(terms("another", "slow")) == pytest.approx(0.2, abs=0.05)
    assert levels.of(terms("another", "fast")) == pytest.approx(0.0, abs=0.05)
    assert levels.sources == {"slow": 8, "fast": 8}


def test_one_source_is_believed_in_part():
    others = [r for s in range(12) for r in rows(f"s{s}", 0.0, "usual")]
    levels = fit_levels(others + rows("odd", 0.2, "odd"))
    assert 0.05 < levels.of(terms("odd", "a")) < 0.15
    assert levels.of(terms("usual", "a")) == pytest.approx(0, abs=0.02)


def test_a_cell_has_one_vote_however_many_rows_it_has():
    residuals = [r for s in range(6) for r in rows(f"s{s}", 0.02 * s, f"p{s % 2}")]
    more = residuals + rows("s5", 0.1, "p1", count=500)
    for profile in ("p0", "p1"):
        assert fit_levels(more).of(terms(profile, "a")) == pytest.approx(
            fit_levels(residuals).of(terms(profile, "a"))
        )


def test_a_far_cell_moves_little():
    residuals = [r for s in range(12) for r in rows(f"s{s}", 0.05, f"p{s}")]
    far = residuals + rows("far", 2.0, "far")
    assert fit_levels(far).all == pytest.approx(fit_levels(residuals).all, abs=0.02)


def test_the_order_of_rows_does_not_matter():
    draw = random.Random(7)
    residuals = [r for s in range(9) for r in rows(f"s{s}", draw.gauss(0.05, 0.1), f"p{s % 4}")]
    shuffled = residuals[:]
    draw.shuffle(shuffled)
    assert fit_levels(shuffled) == fit_levels(residuals)


def test_models_without_a_lineage_have_no_level_and_teach_none():
    images = [r for s in range(9) for r in rows(f"s{s}", 0.5, "images", None)]
    sequences = [r for s in range(9) for r in rows(f"s{s}", 0.1, "text")]
    levels = fit_levels(images + sequences)
    assert levels == fit_levels(sequences)
    assert levels.of(terms("images", None)) == 0


def test_rows_are_judged_by_what_other_sources_tell():
    residuals = [r for s in range(9) for r in rows(f"s{s}", 0.1, f"p{s}")] + rows("odd", 0.4, "odd")
    around = {r.source: r.value for r in centred(residuals)}
    without = fit_levels(r for r in residuals if r.source != "odd")
    assert around["odd"] == pytest.approx(0.4 - without.of(terms("odd", "a")))
    assert abs(around["s0"]) < 0.03


def test_two_sources_tell_no_level():
    levels = fit_levels(rows("one", 0.1, "p") + rows("two", 0.1, "p"))
    assert levels.of(terms("p", "a")) == 0
