"""Execution graphs as plain data say what the text of the last pass says."""

from __future__ import annotations

import re

import plancast as pc
import pytest
from plancast.planning import compile_passes

MACHINE = pc.Machine.preset("dgx-a100-80g:1")
PLAN = {"strategy": "dp=2,tp=2,pp=2,mb=1", "batch": 8}


def test_tasks_are_those_of_the_text(small):
    graph = pc.execution_graph(small, MACHINE, **PLAN)
    text = compile_passes(small, MACHINE, **PLAN)["lower"]
    blocks = {id(i.block): i.block for p in graph.programs for i in p.instances}.values()
    told = [task.label for block in blocks for task in block.tasks]
    assert sorted(told) == sorted(re.findall(r"^  \d+ \w+ \w+ `(.*?)`", text, re.MULTILINE))
    sizes = [task.bytes for block in blocks for task in block.tasks if task.collective]
    assert sorted(sizes) == sorted(int(size) for size in re.findall(r" (\d+) B over", text))


def test_programs_share_out_the_devices(small):
    graph = pc.execution_graph(small, MACHINE, **PLAN)
    assert graph.axes == {"pp": 2, "dp": 2, "tp": 2}
    assert [graph.devices(p.where) for p in graph.programs] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    layers = [
        (i.first_layer, i.layers * i.repeats)
        for p in graph.programs
        for i in p.instances
        if i.block.name == "layer.F" and i.micro_batch == 0
    ]
    assert layers == [(0, 2), (2, 2)]


def test_groups():
    graph = pc.ExecutionGraph({"pp": 2, "dp": 2, "tp": 2}, ())
    assert graph.groups(["tp"]) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert graph.groups(["dp"], {"pp": 1}) == [[4, 6], [5, 7]]
    assert graph.groups(["pp", "tp"], {"pp": 1}) == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert graph.groups([], {"pp": 0, "tp": 1}) == [[1], [3]]


def test_what_cannot_be_compiled_says_why(small):
    with pytest.raises(pc.InputError, match="dp"):
        pc.execution_graph(small, MACHINE, "dp=3,tp=2", batch=6)
