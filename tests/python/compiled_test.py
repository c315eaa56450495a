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


def test_stages_with_meshes_of_their_own(small):
    """Two ranks of data parallelism, an idle device, and two of tensor parallelism."""
    strategy = pc.Strategy.parse("mb=1").stages(
        [
            {"nodes": ["embedding", "layers[0:2]"], "devices": "gpus 0-1", "mesh": {"tp": 1}},
            {"nodes": ["layers[2:4]", "head"], "devices": "gpus 3-4", "mesh": {"dp": 1, "tp": 2}},
        ],
        idle=["gpu 2", "gpus 5-7"],
    )
    graph = pc.execution_graph(small, MACHINE, strategy, batch=8)
    assert [p.name for p in graph.programs] == ["stage 0", "stage 1", "idle", "idle"]
    assert graph.groups(["dp"], program=graph.programs[0]) == [[0, 1]]
    assert graph.groups(["tp"], program=graph.programs[1]) == [[3, 4]]
    assert graph.groups(["idle"], program=graph.programs[3]) == [[5, 6, 7]]
    sends = [
        task
        for instance in graph.programs[0].instances
        for task in instance.block.tasks
        if task.collective == "reshard" and task.stream == "send_next"
    ]
    flows = graph.reshards[sends[0].reshard]["send_receive"]
    assert {(source, target) for source, target, _ in flows} == {(0, 3), (0, 4), (1, 3), (1, 4)}
    assert sum(size for _, _, size in flows) == sends[0].bytes
