"""Names that others wrote are shown, not obeyed, wherever they come out."""

from __future__ import annotations

import csv
import io
import json

import plancast as pc
import pytest
import yaml
from conftest import measured_row
from plancast import textual
from plancast.records import Kernel, Records

# Clears the screen, sets a title, turns text round, begins a sequence in one character.
EVIL = "x\x1b[2J\x1b]0;evil\x07\u202e\x9b31m[red][/nothing]<script>alert(1)</script>"
HIDDEN = ("\x1b", "\x07", "\u202e", "\x9b")

ROW = measured_row("one", source=EVIL, group=EVIL, software=EVIL, tier="A", iter_time_s=1)


@pytest.fixture
def model(tmp_path, small):
    path = tmp_path / "evil.json"
    path.write_text(json.dumps({**small.config, "name": EVIL}))
    return str(path)


@pytest.fixture
def machine(tmp_path):
    path = tmp_path / "machine.json"
    path.write_text(json.dumps({"preset": "dgx-a100-80g", "hosts": 1, "name": EVIL}))
    return str(path)


def assert_shown(text):
    assert not any(character in text for character in HIDDEN)
    # Bells rich leaves out.
    joined = "".join(text.split()).replace("\\x07", "")
    assert "x\\x1b[2J\\x1b]0;evil\\u202e\\x9b31m[red][/nothing]" in joined


def test_names_in_tables(cli, model, machine):
    plan = ("-m", model, "-c", machine, "-s", "tp=8,mb=1", "--batch", "8")
    code, out, err = cli("predict", *plan)
    assert code == 0, err
    assert_shown(out)
    code, out, _ = cli("compare", *plan, "-s", "tp=4,mb=1")
    assert code == 0
    assert_shown(out)


def test_names_in_json_stay_as_they_are(cli, model, machine):
    code, out, _ = cli("predict", "-m", model, "-c", machine, "-s", "tp=8,mb=1", "--json")
    assert code == 0
    assert not any(character in out for character in HIDDEN)
    assert json.loads(out)["provenance"]["model"] == EVIL


def test_names_in_errors(cli, model):
    message = cli.error("predict", "-m", model, "-c", EVIL, "-s", "tp=8")
    assert not any(character in message for character in HIDDEN)


def test_names_in_pages(cli, model, machine, tmp_path):
    page = tmp_path / "page.html"
    plan = ("-m", model, "-c", machine, "-s", "tp=8,mb=1", "--batch", "8")
    assert cli("predict", *plan, "--report", str(page))[0] == 0
    text = page.read_text()
    assert not any(character in text for character in HIDDEN)
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
    assert text.count("</script") == 4  # the page's own


def test_names_in_records(cli, tmp_path):
    records = Records(tmp_path / "kernels.db")
    records.add(Kernel.gemm(64, 64, 64), gpu=EVIL, seconds=1e-3, source=EVIL)
    code, out, _ = cli("records", "show", str(records.path))
    assert code == 0
    assert not any(character in out for character in HIDDEN)
    assert "\\x1b[2J" in out


def test_names_in_traces(cli, tmp_path):
    trace = tmp_path / "trace.json"
    event = {"cat": "COLL", "id": 0, "pid": 1, "tid": 1, "args": {}}
    lines = [
        {"name": EVIL, "ph": "b", "ts": 1.0, **event},
        {"name": EVIL, "ph": "e", "ts": 2.0, **event},
    ]
    trace.write_text("[\n" + ",\n".join(json.dumps(line) for line in lines) + ",\n{}]\n")
    code, out, err = cli("import", "trace", str(trace))
    assert code == 0, err
    assert not any(character in out for character in HIDDEN)


def test_names_in_markdown_pages(tmp_path):
    from plancast.accuracy.validation.run import validate
    from plancast.report.markdown import scoreboard_markdown

    rows = tmp_path / "rows.csv"
    with rows.open("w", newline="") as file:
        csv.writer(file).writerows([ROW.keys(), ROW.values()])
    text = scoreboard_markdown(validate([str(rows)]))
    assert not any(character in text for character in HIDDEN)
    assert "<script" not in text
    assert "&lt;script>" in text


def test_a_terminal_keeps_its_own_colours(small):
    from plancast.report.terminal import Terminal

    screen = io.StringIO()
    terminal = Terminal(file=screen, force_terminal=True, width=100, color_system="standard")
    model = pc.Model.from_config(**{**small.config, "name": EVIL})
    terminal.print(pc.predict(model, pc.Machine.preset("dgx-a100-80g"), "tp=8,mb=1"))
    text = screen.getvalue()
    assert "\x1b[1m" in text
    assert "\x1b[2J" not in text
    assert "\x07" not in text


def test_markdown_keeps_what_is_no_tag():
    assert textual.markdown("a < 1B, <b> <!-- --> x|y") == ("a < 1B, &lt;b> &lt;!-- --> x\\|y")
    assert yaml.safe_load(yaml.safe_dump(textual.shown(EVIL))) == textual.shown(EVIL)
