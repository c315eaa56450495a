#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "cluster/machine.h"
#include "interop/astra/case_table.h"
#include "interop/astra/comm_groups_file.h"
#include "interop/astra/network_file.h"
#include "interop/astra/system_file.h"
#include "interop/astra/text_workload.h"
#include "interop/astra/workload_from_traces.h"
#include "interop/chakra/chakra_trace.h"
#include "interop/chakra/dag_from_traces.h"
#include "interop/chakra/et_file.h"
#include "interop/chakra/verify_traces.h"
#include "proto/text_proto.h"
#include "tests/fuzz/native/targets/groups.h"

namespace plancast {
namespace {

absl::Status CaseTable(absl::string_view bytes) { return ReadAstraCases(bytes, "cases").status(); }

absl::Status Network(absl::string_view bytes) {
  const absl::StatusOr<AstraNetwork> network = ReadAstraNetwork(bytes, "network");
  if (!network.ok()) return network.status();
  const absl::Status sound = network->Verify();
  return sound.ok() ? sound : absl::InternalError(sound.message());
}

absl::Status System(absl::string_view bytes) { return ReadAstraSystem(bytes, "system").status(); }
absl::Status Groups(absl::string_view bytes) { return ReadCommGroups(bytes, "groups").status(); }

absl::Status Workload(absl::string_view bytes) {
  return ReadTextWorkload(bytes, "workload").status();
}

// As rank 0 alongside a rank 1 that receives what it sends and sends what it receives.
absl::Status Run(const EtFile& file) {
  const absl::StatusOr<ChakraTrace> trace = ChakraTraceFrom(file, "trace");
  if (!trace.ok()) return trace.status();
  AstraCustomFrom(*trace).status().IgnoreError();
  ChakraTrace mirrored = *trace;
  for (ChakraTrace::Node& node : mirrored.nodes) {
    const bool send = node.kind == ChakraTrace::Kind::kSend;
    if (!send && node.kind != ChakraTrace::Kind::kRecv) continue;
    node.kind = send ? ChakraTrace::Kind::kRecv : ChakraTrace::Kind::kSend;
    node.src = send ? 0 : -1;
    node.dst = send ? -1 : 0;
  }
  const std::vector<const ChakraTrace*> ranks = {&*trace, &mirrored};
  const CommGroups groups = {{1, {0, 1}}};
  if (absl::Status sound = VerifyTraces(ranks, groups); !sound.ok()) return sound;
  static const auto* const machine = new Machine(*MachineFromPreset("dgx-h100:1x2"));
  const absl::Status dag = DagJobFrom(ranks, groups, machine->device()).status();
  return dag.ok() ? AstraWorkloadFrom(ranks, groups).status() : dag;
}

absl::Status ChakraFile(absl::string_view bytes) {
  const absl::StatusOr<EtFile> file = ReadEtFile(bytes, "trace");
  if (!file.ok()) return file.status();
  const absl::Status again = ReadEtFile(WriteEtFile(*file), "written").status();
  return again.ok() ? Run(*file) : absl::InternalError(again.message());
}

// Nodes in protobuf's text format, with lines `---` between them: so that changes
// reach what lies behind the lengths of the file.
absl::Status ChakraNodes(absl::string_view bytes) {
  EtFile file;
  for (absl::string_view text : absl::StrSplit(bytes, "---\n")) {
    absl::StatusOr<chakra::Node> node = ParseTextProto<chakra::Node>(text, "node");
    if (!node.ok()) return node.status();
    file.nodes.push_back(*std::move(node));
  }
  const absl::StatusOr<EtFile> again = ReadEtFile(WriteEtFile(file), "written");
  return again.ok() ? Run(*again) : again.status();
}

}  // namespace

std::vector<FuzzTarget> AstraTargets() {
  const std::vector<std::string> chakra = {"pg_name",
                                           "comm_type",
                                           "comm_size",
                                           "involved_dim",
                                           "comm_src",
                                           "comm_dst",
                                           "comm_tag",
                                           "tensor_size",
                                           "is_cpu_op",
                                           "num_ops",
                                           "data_deps: 1",
                                           "---\n",
                                           "bool_list { values: true }",
                                           "int64_val: -1"};
  return {{"astra_cases",
           CaseTable,
           {",", "\"", "\r\n", "x", " x ", "Ring", "Switch", "doubleBinaryTree", "baseline", "ok"},
           {"\"", ",", "8x", "\"\""}},
          {"astra_network",
           Network,
           {"topology:", "[", "]", "- 1", "FullyConnected", "&a", "*a", "!!int", "---", "|", "{",
            "nan", ".inf"},
           {"[", "- ", "a: ", "{a: ", "\n  - "}},
          {"astra_system",
           System,
           {"\"ring\"", "\"halvingDoubling\"", "\"direct4\"", "\"LIFO\"", "null", "1e400",
            "\"all-reduce-implementation-custom\""},
           {"[", "{\"a\":", "[{\"a\":"}},
          {"astra_comm_groups",
           Groups,
           {"\"0\"", "\"18446744073709551616\"", "null"},
           {"[", "{\"1\":", "[0,"}},
          {"astra_workload",
           Workload,
           {"MODEL", "DATA", "ALLREDUCE", "NONE", "-1", "HYBRID_TRANSFORMER"},
           {"a -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"}},
          {"chakra_et", ChakraFile, chakra, {}},
          {"chakra_nodes", ChakraNodes, chakra, {"attr {", "inputs {", "id: 1\n---\n"}}};
}

}  // namespace plancast
