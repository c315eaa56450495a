"""Memory does not grow with forecasts; `make soak` asks for 50,000 and for 1,000 sessions."""

from __future__ import annotations

import plancast as pc
from plancast import session as sessions

from tests.fuzz.leaks import MORE, across_sessions, forecast, in_one_session


def test_a_session_holds_so_much_and_then_begins_anew(monkeypatch):
    monkeypatch.setattr(sessions, "_MOST_VALUES", 40)
    early, late = in_one_session(400)
    assert late <= early * (1 + MORE)


def test_sessions_that_are_gone_leave_nothing():
    early, late = across_sessions(40, each=4)
    assert late <= early * (1 + MORE)


def test_a_session_that_began_anew_answers_the_same(monkeypatch):
    def times(session: pc.Session) -> list[float]:
        model, machine = pc.Model.preset("gpt2", seq=64), pc.Machine.preset("dgx-h100", hosts=1)
        return [
            pc.predict(
                model, machine, f"dp=8,mb=1,zero={n % 4}", batch=8 + 8 * n, session=session
            ).iteration_time
            for n in range(12)
        ]

    expected = times(pc.Session())
    monkeypatch.setattr(sessions, "_MOST_VALUES", 5)
    session = pc.Session()
    assert times(session) == expected
    assert session.misses > 5
    forecast(0, session)
