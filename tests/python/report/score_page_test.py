"""The page of a validation in a browser."""

from __future__ import annotations

import pytest
from chromium import browser, complaints, fit, open_page, overflow, texts
from plancast.accuracy.report.score_page import scoreboard_page
from plancast.accuracy.validation.run import validate
from plancast.report.page.frame import write_page

ROWS = (
    "row_id,source,model,layers,hidden,heads,ffn_hidden,vocab,seq_len,machine,strategy,"
    "global_batch,dtype,software,iter_time_s\n"
    '<b>one,a,small,4,512,8,2048,1000,256,dgx-a100-80g:1,"tp=8,mb=1",16,bf16,Megatron-LM,0.05\n'
    'two,b</script>,small,4,512,8,2048,1000,256,dgx-a100-80g:1,"mb=1",16,bf16,Megatron-LM,0.06\n'
)


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    path.write_text(ROWS)
    return validate([path])


def test_a_validation(board, tmp_path):
    path = tmp_path / "page.html"
    write_page(path, scoreboard_page(board, "plancast validate rows.csv"))
    assert path.read_text().count("</script") == 4
    with browser() as driver:
        open_page(driver, path, 1600)
        for width in (400, 800):
            fit(driver, width)
            assert overflow(driver) <= 0
        assert texts(driver, "#grid0 tbody tr td:first-child") == ["<b>one", "two"]
        assert "b</script>" in " ".join(texts(driver, "#sources td"))
        assert any("in the 90 % interval" in card for card in texts(driver, ".card"))
        driver.find_element("css selector", "#grid0 th:nth-child(4) .sort").click()
        assert texts(driver, "#grid0 tbody tr td:first-child")[0] in ("<b>one", "two")
        assert complaints(driver) == []
