#include "interop/chakra/chakra_trace.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/interop/chakra/et_builder.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(std::vector<chakra::Node> nodes) {
  EtFile file;
  file.nodes = std::move(nodes);
  return std::string(ChakraTraceFrom(file, "t.et").status().message());
}

TEST(ChakraTraceTest, NodesByIdWithDependenciesOfBothKinds) {
  EtFile file;
  file.nodes = {EtCollective(9, chakra::REDUCE_SCATTER, 64, {4, 7}, "3"), EtKernel(7, 11, {4}),
                EtKernel(4, 10)};
  file.nodes[0].add_ctrl_deps(7);
  const auto trace = ChakraTraceFrom(file, "t.et");
  ASSERT_OK(trace);
  ASSERT_EQ(trace->nodes.size(), 3);
  EXPECT_EQ(trace->nodes[0].id, 4);
  EXPECT_EQ(trace->nodes[1].duration_us, 11);
  EXPECT_THAT(trace->nodes[2].deps, ElementsAre(0, 1));
  EXPECT_EQ(trace->nodes[2].group, 3);
  EXPECT_EQ(trace->nodes[2].collective, chakra::REDUCE_SCATTER);
}

// Traces converted from PyTorch say more than time needs.
TEST(ChakraTraceTest, OtherAttributesSayNothing) {
  EtFile file;
  chakra::Node node = EtKernel(1, 3);
  for (const char* name : {"rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid"}) {
    SetInt(node, name, -1);
  }
  chakra::AttributeProto* schema = node.add_attr();
  schema->set_name("op_schema");
  schema->set_string_val("aten::mm(Tensor self, Tensor mat2) -> Tensor");
  chakra::AttributeProto* cpu = node.add_attr();
  cpu->set_name("is_cpu_op");
  cpu->set_int32_val(1);
  file.nodes = {node};
  const auto trace = ChakraTraceFrom(file, "t.et");
  ASSERT_OK(trace);
  EXPECT_TRUE(trace->nodes[0].on_cpu);
}

chakra::Node OnCpu(chakra::Node node, const std::string& name) {
  SetInt(node, "is_cpu_op", 1);
  node.set_name(name);
  return node;
}

// As PyTorch's converter writes a collective: the call on the CPU side, and its kernel.
TEST(ChakraTraceTest, CallsOnTheCpuSideAreHostWork) {
  EtFile file;
  chakra::Node call = OnCpu(EtNode(1, chakra::COMM_COLL_NODE), "c10d::broadcast_");
  call.set_duration_micros(20);
  chakra::Node send = OnCpu(EtNode(3, chakra::COMM_SEND_NODE), "c10d::send");
  SetInt(send, "comm_size", 8);  // to whom?
  file.nodes = {call, EtCollective(2, chakra::BROADCAST, 64, {1}), send,
                OnCpu(EtCollective(4, chakra::ALL_REDUCE, 64), "micro benchmark")};
  const auto trace = ChakraTraceFrom(file, "t.et");
  ASSERT_OK(trace);
  EXPECT_EQ(trace->nodes[0].kind, ChakraTrace::Kind::kCompute);
  EXPECT_TRUE(trace->nodes[0].on_cpu);
  EXPECT_EQ(trace->nodes[0].duration_us, 20);
  EXPECT_EQ(trace->nodes[1].kind, ChakraTrace::Kind::kCollective);
  EXPECT_EQ(trace->nodes[2].kind, ChakraTrace::Kind::kCompute);
  // One that says everything is what it says.
  EXPECT_EQ(trace->nodes[3].kind, ChakraTrace::Kind::kCollective);
  EXPECT_EQ(trace->liberties.calls, 2);
  EXPECT_THAT(NotesOf({&*trace, &*trace}),
              ElementsAre(HasSubstr("4 communications on the CPU side")));
}

TEST(ChakraTraceTest, ControlEdgesToNoNodeOrToItselfAreLeftOut) {
  EtFile file;
  file.nodes = {EtKernel(1, 1), EtKernel(2, 1, {1})};
  file.nodes[0].add_ctrl_deps(1);
  file.nodes[1].add_ctrl_deps(77);
  file.nodes[1].add_ctrl_deps(1);
  const auto trace = ChakraTraceFrom(file, "t.et");
  ASSERT_OK(trace);
  EXPECT_THAT(trace->nodes[0].deps, ElementsAre());
  EXPECT_THAT(trace->nodes[1].deps, ElementsAre(0));
  EXPECT_EQ(trace->liberties.control_edges, 2);
  EXPECT_THAT(NotesOf({&*trace}), ElementsAre(HasSubstr("2 control edges")));
}

TEST(ChakraTraceTest, ACollectiveWithoutATypeIsWhatItsNameSays) {
  const std::pair<const char*, chakra::CollectiveCommType> names[] = {
      {"ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", chakra::BROADCAST},
      {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", chakra::REDUCE_SCATTER},
      {"nccl:all_reduce", chakra::ALL_REDUCE},
      {"nccl:_all_gather_base", chakra::ALL_GATHER},
      {"c10d::alltoall_base_", chakra::ALL_TO_ALL},
  };
  for (const auto& [name, type] : names) {
    EtFile file;
    chakra::Node node = EtNode(1, chakra::COMM_COLL_NODE);
    node.set_name(name);
    SetInt(node, "comm_size", 64);
    file.nodes = {node};
    const auto trace = ChakraTraceFrom(file, "t.et");
    ASSERT_OK(trace) << name;
    EXPECT_EQ(trace->nodes[0].collective, type) << name;
    EXPECT_EQ(trace->liberties.named, 1);
  }
  chakra::Node unknown = EtNode(1, chakra::COMM_COLL_NODE);
  SetInt(unknown, "comm_size", 64);
  EXPECT_THAT(ErrorOf({unknown}), HasSubstr("`comm_type` -1"));
}

TEST(ChakraTraceTest, ErrorsNameTheNode) {
  EXPECT_THAT(ErrorOf({EtKernel(1, 1), EtKernel(1, 1)}), HasSubstr("node 1 (`node`) has an id"));
  EXPECT_THAT(ErrorOf({EtKernel(1, 1, {5})}),
              HasSubstr("waits for node 5, which the file does not"));
  EXPECT_THAT(ErrorOf({EtKernel(1, 1, {2}), EtKernel(2, 1, {1})}), HasSubstr("one must be free"));
  EXPECT_THAT(ErrorOf({EtKernel(0, 1), EtKernel(1, 1, {2}), EtKernel(2, 1, {1})}),
              HasSubstr("waits for itself"));
  EXPECT_THAT(ErrorOf({EtCollective(1, chakra::ALL_REDUCE, 0)}), HasSubstr("no `comm_size`"));
  EXPECT_THAT(ErrorOf({EtCollective(1, static_cast<chakra::CollectiveCommType>(12), 8)}),
              HasSubstr("`comm_type` 12"));
  EXPECT_THAT(ErrorOf({EtCollective(1, chakra::ALL_REDUCE, 8, {}, "dp")}),
              HasSubstr("groups are numbers"));
  EXPECT_THAT(ErrorOf({EtNode(1, chakra::COMM_SEND_NODE)}), HasSubstr("no `comm_size`"));
  chakra::Node list = EtCollective(1, chakra::ALL_REDUCE, 8);
  SetInt(list, "involved_dim", 1);
  EXPECT_THAT(ErrorOf({list}), HasSubstr("list of at most 64 bools"));
}

}  // namespace
}  // namespace plancast
