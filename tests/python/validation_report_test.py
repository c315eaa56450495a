"""Reports of `plancast validate`: every row is there, and pages are what they should be."""

from __future__ import annotations

from html.parser import HTMLParser

import plancast as pc
import pytest
from plancast.accuracy.report.score_page import scoreboard_page
from plancast.accuracy.report.score_tables import score_tables
from plancast.accuracy.validation.run import validate
from plancast.accuracy.validation.scoreboard import Scoreboard
from plancast.report.markdown import fill, scoreboard_markdown

COLUMNS = (
    "row_id,source,group,model,layers,hidden,heads,ffn_hidden,vocab,seq_len,machine,strategy,"
    "global_batch,dtype,software,iter_time_s,peak_mem_gb,assumptions"
)
PLANS = ("dp=1,tp=8,mb=1", "dp=2,tp=4,mb=1", "dp=4,tp=2,mb=2", "dp=8,mb=1")
VOID = {"meta", "input", "line", "circle", "rect"}


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


class Page(HTMLParser):
    """Checks that elements nest and collects what a page holds."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.loads, self.words = [], [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            elif name == "href":
                self.links.append(value)
            elif name == "src":
                self.loads.append(value)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_a_page_nests_and_loads_nothing(board):
    text = scoreboard_page(board)
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert page.loads == []
    assert "@import" not in text and "url(" not in text
    assert 'lang="en"' in text and "prefers-color-scheme: dark" in text


def test_a_page_has_every_row_and_says_nothing_raw(board):
    text = scoreboard_page(board)
    words = "".join(Page(text).words)
    for result in board.results:
        assert result.row.row_id in words
    assert "odd-<1>" not in text
    # Each in the scatter and in every picture of residuals.
    pictures = text.count('<svg role="img"')
    assert text.count("<g class=") == pictures * len(board.scored)
    assert pictures == 2 + len(board.slices)


def test_pictures_have_names_and_tables_have_heads(board):
    text = scoreboard_page(board)
    assert text.count('<svg role="img"') == text.count('role="img" aria-label="')
    assert text.count("<table>") == text.count("<thead>") == text.count('role="region"')
    assert text.count('<th scope="row">') >= len(board.results)


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
    assert Page(scoreboard_page(board)).ids
    assert scoreboard_markdown(board).startswith("# Accuracy")
