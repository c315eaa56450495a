"""Reports of `plancast validate`: every row is there, and pages are what they should be."""

from __future__ import annotations

import plancast as pc
import pytest
from plancast.accuracy.report.score_figures import residuals, scatter
from plancast.accuracy.report.score_page import scoreboard_page
from plancast.accuracy.report.score_tables import score_tables
from plancast.accuracy.validation.run import validate
from plancast.accuracy.validation.scoreboard import Scoreboard
from plancast.accuracy.validation.slices import PROPERTIES
from plancast.report.markdown import fill, scoreboard_markdown

COLUMNS = (
    "row_id,source,group,model,layers,hidden,heads,ffn_hidden,vocab,seq_len,machine,strategy,"
    "global_batch,dtype,software,iter_time_s,peak_mem_gb,assumptions"
)
PLANS = ("dp=1,tp=8,mb=1", "dp=2,tp=4,mb=1", "dp=4,tp=2,mb=2", "dp=8,mb=1")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Five sources of four plans each; every source is off by a constant of its own."""
    lines = [COLUMNS]
    for s in range(5):
        for p, plan in enumerate(PLANS):
            time = 0.05 * (1 + 0.1 * s) * (1 + 0.05 * p)
            lines.append(
                f"row-{s}-{p},source-{s},source-{s}|job,small,4,512,8,2048,1000,256,"
                f'dgx-a100-80g:1,"{plan},recompute=none,attn=flash",16,bf16,Megatron-LM,{time},'
                "1.5,mem=allocated"
            )
    lines.append(
        'odd-<1>,source-0,,small,4,512,8,2048,1000,256,nowhere:1,"dp=8,mb=1",16,bf16,x,1,,'
    )
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def board(rows):
    return validate([rows], uncalibrated=True)


def test_a_page_has_every_row_and_says_nothing_raw(board):
    page = scoreboard_page(board, "plancast validate rows.csv")
    assert [row.split(",")[0] for row in page.files["rows.csv"].splitlines()[1:]] == [
        result.row.row_id for result in board.results
    ]
    text = page.render()
    assert "odd-<1>" not in text
    assert "odd-\\u003c1>" in text
    keys = [section.key for section in page.sections]
    assert len(keys) == len(set(keys))
    assert keys[0] == "scatter" and keys[-1] == "rows"
    assert {table.key for table in score_tables(board)} < set(keys)


def test_pictures_have_every_row_once(board):
    sources = sorted(board.sources)
    figure = scatter(board.scored, sources)
    assert [trace["name"] for trace in figure["data"]] == sources
    for trace in figure["data"]:
        own = [r for r in board.scored if r.row.source == trace["name"]]
        assert trace["x"] == pytest.approx([r.measured for r in own], rel=1e-4)
        assert trace["y"] == pytest.approx([r.predicted for r in own], rel=1e-4)
    for name, value in PROPERTIES.items():
        order = sorted({value(result) for result in board.scored})
        traces = residuals(board.scored, sources, value, order)["data"]
        drawn = [(x, y) for t in traces for x, y in zip(t["x"], t["y"], strict=True)]
        assert len(drawn) == len(board.scored), name
        for x, y in drawn:
            own = [r for r in board.scored if value(r) == order[round(x)]]
            wanted = [100 * min(max(r.error, -0.5), 1.0) for r in own]
            assert any(y == pytest.approx(error, rel=1e-3) for error in wanted)


def test_tables_agree_with_the_scores(board):
    tables = {table.key: table for table in score_tables(board)}
    assert {"sources", "by_tp", "groups", "intervals", "scales", "pairs", "memory", "worst"} <= set(
        tables
    )
    for table in tables.values():
        assert all(len(row) == len(table.head) for row in table.rows), table.key
    assert [row[0] for row in tables["by_tp"].rows] == ["1", "2", "4", "8"]
    assert [row[1] for row in tables["by_tp"].rows] == ["5", "5", "5", "5"]
    assert tables["sources"].head[-1] == "data sheet"
    assert sum(int(row[1]) for row in tables["pairs"].rows) == 5 * 6


def test_markdown_is_the_same_every_time(board, rows):
    again = validate([rows], uncalibrated=True, workers=2)
    assert scoreboard_markdown(board) == scoreboard_markdown(again)


def test_a_template_takes_tables_and_figures(board):
    text = fill("{{rows}} rows, {{bias source-1}}, {{rows source-2}}\n\n{{table fits}}", board)
    bias = board.sources["source-1"]["bias"]
    assert text.startswith(f"21 rows, {bias * 100:+.1f} %, 4\n\n| ")


def test_a_template_takes_sections_of_other_pages(board, tmp_path):
    (tmp_path / "other.md").write_text("# Page\n\nabove\n\n## Here\n\n| a |\n\n## Next\n\nx\n")
    assert fill("<{{section other.md#Here}}>", board, tmp_path) == "<| a |>"
    with pytest.raises(pc.InputError, match=r"no heading in `.*other.md` `There`"):
        fill("{{section other.md#There}}", board, tmp_path)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{table sorces}}", "no table `sorces` for the report. Did you mean `sources`"),
        ("{{mape nobody}}", "no source `nobody`"),
        ("{{apples}}", "no count `apples`"),
    ],
)
def test_a_template_says_what_is_not_there(board, template, message):
    with pytest.raises(pc.InputError, match=message):
        fill(template, board)


def test_the_command_writes_pages(cli, rows, tmp_path):
    template = tmp_path / "t.md"
    template.write_text("have {{scored}}\n")
    out = tmp_path / "out.md"
    code, _, err = cli("validate", str(rows), "--template", str(template), "--report", str(out))
    assert code == 0, err
    assert out.read_text() == "have 20\n"
    code, _, err = cli("validate", str(rows), "--template", str(template))
    assert code == 2
    assert "--report" in err


def test_the_command_writes_the_uncertainty(cli, rows, tmp_path):
    out = tmp_path / "u.textproto"
    code, _, err = cli("validate", str(rows), "--fit-uncertainty", str(out), "--date", "2026-01-02")
    assert code == 0, err
    text = out.read_text()
    assert 'date: "2026-01-02"' in text and "sources: 5" in text and "most_tp: 8" in text
    assert 'profile: "megatron-core"' in text


def test_json_says_more_beside_the_documented_fields(cli, rows):
    value = cli.json("validate", str(rows), "--uncalibrated")
    assert set(value["uncalibrated"]) == set(value["sources"])
    assert value["intervals"]["sources"]["source-3"]["rows"] == 4
    assert value["slices"]["tp"]["4"]["rows"] == 5
    assert value["memory"]["source-0"]["rows"] == 4


def test_an_empty_scoreboard_has_pages():
    board = Scoreboard(results=())
    assert scoreboard_page(board).render()
    assert scoreboard_markdown(board).startswith("# Accuracy")
