"""Tables at any width: words wrap, columns leave, numbers stay whole."""

from __future__ import annotations

import io

import pytest
from plancast.accuracy.report.fitted_table import FittedTable, wrapped
from rich.console import Console
from rich.text import Text

PLAN = "dp=2,tp=8,sp,pp=8,vpp=3,zero=1,mb=1,recompute=selective:core_attn+layernorm,schedule=1f1b"


def lines(table, width):
    console = Console(width=width, file=io.StringIO())
    console.print(table, crop=False)
    return console.file.getvalue().splitlines()


def plans():
    table = FittedTable()
    table.numbers("#")
    table.words("strategy", least=24)
    table.numbers("iteration")
    table.numbers("MFU", leaves=2)
    table.numbers("bubble", leaves=1)
    table.row("1", PLAN, "1,066.12 s", "43.4 %", "12.3 %")
    table.row("2", "tp=8", "1,234,567 s", "3.4 %", "0.3 %")
    return table


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_it_fits_and_cuts_no_number(width):
    printed = lines(plans(), width)
    assert max(map(len, printed)) <= width
    text = "\n".join(printed)
    assert "…" not in text
    assert "1,066.12 s" in text
    assert "1,234,567 s" in text


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_a_plan_wraps_after_its_commas_and_loses_no_letter(width):
    table = FittedTable()
    table.words("strategy")
    table.numbers("iteration")
    table.row(PLAN, "1 s")
    body = lines(table, width)[3:-1]
    assert "".join(line.replace("1 s", "").strip() for line in body) == PLAN
    assert all(line.replace("1 s", "").strip()[-1] in ",:=+" for line in body[:-1])


def test_the_least_used_column_leaves_first_and_is_named():
    assert "bubble" in lines(plans(), 80)[1]
    printed = lines(plans(), 52)
    assert "bubble" not in printed[1]
    assert "MFU" in printed[1]
    assert printed[-1].strip() == "not shown in 52 columns: bubble"


def test_numbers_that_are_too_wide_make_the_table_wider_than_the_page():
    printed = lines(plans(), 20)
    assert any("1,234,567 s" in line for line in printed)
    assert max(map(len, printed)) > 20


def test_without_bounds_nothing_wraps():
    printed = lines(plans(), 100_000)
    assert any(PLAN in line for line in printed)
    assert max(map(len, printed)) < 200


def test_a_stacked_table_continues_below_beside_its_first_column():
    table = FittedTable(stacked=True)
    table.words("")
    table.numbers("A", "B", "C", "D")
    table.row("iteration", *["1,066.12 s"] * 4)
    printed = lines(table, 40)
    assert max(map(len, printed)) <= 40
    rows = [line for line in printed if "iteration" in line]
    assert len(rows) == 2
    assert sum(line.count("1,066.12 s") for line in rows) == 4


def test_a_title_longer_than_the_table_keeps_its_words():
    table = FittedTable(title="`a very long title`, " * 5)
    table.numbers("GiB")
    table.row("1")
    assert "".join(lines(table, 60)).count("`a very") == 5


@pytest.mark.parametrize("width", [1, 5, 16, 40])
def test_wrapped_text_is_as_narrow_as_asked(width):
    text = wrapped(Text(f"{PLAN} and words, of prose"), width).plain
    assert all(len(line) <= width for line in text.split("\n"))
    assert text.replace("\n", "").replace(" ", "") == f"{PLAN}andwords,ofprose"
