#include "graph/execution/execution_graph.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

// Two pipeline stages of two ranks; stage 0 computes and sends, stage 1 receives.
ExecutionGraph Example() {
  ExecutionGraph graph;
  graph.mesh = *DeviceMesh::Create({{"pp", 2}, {"tp", 2}});
  graph.kernels.emplace_back();
  CommSpec reduce;
  reduce.bytes = 64;
  reduce.axes = {1};
  CommSpec send;
  send.kind = CollectiveKind::kSendRecv;
  send.bytes = 32;
  send.axes = {0};
  send.peer_offset = 1;
  graph.comms = {reduce, send};

  Block layer;
  layer.name = "layers.F";
  layer.kind = {TaskKind::kKernel, TaskKind::kComm};
  layer.spec = {0, 0};
  layer.stream = {StreamKind::kCompute, StreamKind::kModelComm};
  layer.purpose = {Purpose::kForward, Purpose::kTp};
  layer.flags = {0, 0};
  layer.label = {"mlp", "mlp.sum"};
  layer.dep_begin = {0, 1, 2};
  layer.deps = {~0, 0};
  layer.num_in_ports = 1;
  layer.out_ports = {1};
  layer.memory = {{0, false, MemoryKind::kActivations, 0, 128}};
  layer.tensors = {"layers.*.mlp.y"};
  Block transfer;
  transfer.name = "send";
  transfer.kind = {TaskKind::kComm};
  transfer.spec = {1};
  transfer.stream = {StreamKind::kSendNext};
  transfer.purpose = {Purpose::kPp};
  transfer.flags = {Block::kHostSync};
  transfer.label = {"activations"};
  transfer.dep_begin = {0, 1};
  transfer.deps = {~0};
  transfer.num_in_ports = 1;
  transfer.rendezvous_task = 0;
  Block receive = transfer;
  receive.name = "recv";
  receive.stream = {StreamKind::kRecvPrev};
  graph.blocks = {layer, transfer, receive};

  Program first, second;
  first.name = "stage 0";
  first.where = {{0, 0}};
  first.static_bytes[0] = 1000;
  Instance run;
  run.layer_count = 3;
  Instance sends;
  sends.block = 1;
  sends.phase = Phase::kComm;
  sends.rendezvous = 0;
  sends.join_begin = 0;
  sends.join_end = 1;
  first.instances = {run, sends};
  first.joins = {{0, 0, 0}};
  second.name = "stage 1";
  second.where = {{0, 1}};
  Instance receives = sends;
  receives.block = 2;
  receives.join_end = 0;
  second.instances = {receives};
  graph.programs = {first, second};
  graph.rendezvous = {{{{0, 1}, {1, 0}}}};
  return graph;
}

std::string Complaint(const ExecutionGraph& graph) { return std::string(graph.Verify().message()); }

TEST(ExecutionGraphTest, TheExampleIsWhole) {
  EXPECT_EQ(Complaint(Example()), "");
  EXPECT_EQ(UnfoldedTasks(Example(), 0), 7);
  EXPECT_EQ(UnfoldedTasks(Example(), 1), 1);
}

TEST(ExecutionGraphTest, TextNamesEverything) {
  const std::string text = Example().DebugString();
  EXPECT_THAT(text, HasSubstr("mesh pp=2 tp=2\n"));
  EXPECT_THAT(text, HasSubstr("block 0 `layers.F` in 1 out [1]\n"));
  EXPECT_THAT(text, HasSubstr("  1 model tp `mlp.sum` all_reduce 64 B over tp <- 0\n"));
  EXPECT_THAT(text, HasSubstr("before activations+128"));
  EXPECT_THAT(text, HasSubstr("send_recv 32 B over pp offset 1 <- in0 host-sync\n"));
  EXPECT_THAT(text, HasSubstr("program 0 `stage 0` pp=0 parameters 1000\n"));
  EXPECT_THAT(text, HasSubstr("  1 comm `send` mb 0 chunk 0 meets 0 <- 0.0>0\n"));
  EXPECT_THAT(text, HasSubstr("rendezvous 0: 0[1] 1[0]\n"));
}

TEST(ExecutionGraphTest, WhatIsWrongIsNamed) {
  ExecutionGraph graph = Example();
  graph.blocks[0].deps[1] = 1;
  EXPECT_THAT(Complaint(graph), HasSubstr("block `layers.F`: task 1 depends on task 1"));

  graph = Example();
  graph.blocks[0].spec[0] = 7;
  EXPECT_THAT(Complaint(graph), HasSubstr("task 0 names spec 7 of 1"));

  graph = Example();
  graph.blocks[0].memory.push_back({0, false, MemoryKind::kActivations, 0, -128});
  graph.blocks[0].memory.insert(graph.blocks[0].memory.begin(),
                                {1, true, MemoryKind::kWorkspace, 0, 1});
  EXPECT_THAT(Complaint(graph), HasSubstr("not sorted"));

  graph = Example();
  graph.blocks[0].memory[0].tensor = 1;
  EXPECT_THAT(Complaint(graph), HasSubstr("a memory event names tensor 1 of 1"));

  graph = Example();
  graph.blocks[0].gives = {{3, 128}};
  EXPECT_THAT(Complaint(graph), HasSubstr("a port brings 128 bytes of tensor 3 of 1"));

  graph = Example();
  graph.comms[0].axes = {0};
  graph.programs[0].instances[0].layer_count = 2;
  EXPECT_THAT(Complaint(graph),
              HasSubstr("`stage 0` comes 2 times to the same all_reduce as `stage 1`"));

  graph = Example();
  graph.programs[1].where[0].second = 0;
  EXPECT_THAT(Complaint(graph), HasSubstr("claim the same devices"));

  graph = Example();
  graph.programs.pop_back();
  EXPECT_THAT(Complaint(graph), HasSubstr("cover 2 of 4 devices"));

  graph = Example();
  graph.programs[0].joins[0].from = 1;
  EXPECT_THAT(Complaint(graph), HasSubstr("waits for instance 1"));

  graph = Example();
  graph.programs[0].instances[1].layer_count = 2;
  EXPECT_THAT(Complaint(graph), HasSubstr("cannot repeat"));

  graph = Example();
  graph.rendezvous[0].parties.pop_back();
  EXPECT_THAT(Complaint(graph), HasSubstr("rendezvous 0: has 1 parties"));

  graph = Example();
  graph.blocks[1].rendezvous_task = -1;
  EXPECT_THAT(Complaint(graph), HasSubstr("send_recv without a rendezvous"));
}

}  // namespace
}  // namespace plancast
