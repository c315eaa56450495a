#include "interop/astra/simulator/simulate_astra.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "interop/astra/simulator/simulation.h"

namespace plancast {
namespace {

using Kind = AstraAlgorithm::Kind;

absl::Status CheckCustom(const AstraSystem& system, int64_t members) {
  if (static_cast<int64_t>(system.custom.size()) < members) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the custom collective is for ", system.custom.size(), " NPUs; a group has ", members));
  }
  for (int64_t place = 0; place < members; ++place) {
    const AstraProgram& program = system.custom[place];
    bool free = false;
    for (size_t i = 0; i < program.nodes.size(); ++i) {
      free = free || program.dep_begin[i] == program.dep_begin[i + 1];
      const AstraNode& node = program.nodes[i];
      const bool message = node.kind == AstraNodeKind::kSend || node.kind == AstraNodeKind::kRecv;
      if (message && (node.peer < 0 || node.peer >= members || node.bytes < 1)) {
        return absl::InvalidArgumentError(absl::StrCat("custom collective of place ", place,
                                                       ": node ", node.id,
                                                       " has no valid peer or size"));
      }
    }
    if (!free) {
      return absl::InvalidArgumentError(
          absl::StrCat("custom collective of place ", place, ": no node is free to start"));
    }
  }
  return absl::OkStatus();
}

// What a collective needs of the algorithms that it will meet.
absl::Status CheckCollective(const AstraNode& node, const AstraWorkload& workload,
                             const AstraNetwork& network, const AstraSystem& system) {
  const auto& algorithms = system.AlgorithmsOf(node.collective);
  const bool part =
      node.group >= 0 &&
      static_cast<int64_t>(workload.groups[node.group].ranks.size()) != network.npus();
  const int64_t members =
      part ? static_cast<int64_t>(workload.groups[node.group].ranks.size()) : network.npus();
  if (algorithms.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", node.id, " is a collective for which the system names no algorithm"));
  }
  if (node.bytes > int64_t{1} << 50) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", node.id, " moves ", node.bytes, " bytes; the limit is 2^50"));
  }
  if (node.collective == AstraCollective::kAllGather && node.bytes < system.splits) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", node.id, " gathers ", node.bytes, " bytes in ", system.splits,
                     " chunks: chunks of no byte never end in ASTRA-sim"));
  }
  if (node.dims >= 0 && node.group < 0 && workload.involved[node.dims].size() < algorithms.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", node.id, ": `involved_dim` has ", workload.involved[node.dims].size(),
                     " entries; there are ", algorithms.size(), " dimensions"));
  }
  for (const AstraAlgorithm& algorithm : algorithms) {
    if (algorithm.kind == Kind::kCustom) {
      if (absl::Status status = CheckCustom(system, members); !status.ok()) return status;
    }
  }
  if (part && algorithms.size() == 1 && members > 1) {
    const Kind kind = algorithms[0].kind;
    if (kind == Kind::kDoubleBinaryTree ||
        (kind == Kind::kHalvingDoubling && (members & (members - 1)) != 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("node ", node.id, ": its group of ", members, " cannot use ",
                       kind == Kind::kDoubleBinaryTree ? "doubleBinaryTree" : "halvingDoubling",
                       " in ASTRA-sim. Take `ring`."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int64_t AstraResult::first_finish_ns() const {
  return *std::min_element(finish_ns.begin(), finish_ns.end());
}

int64_t AstraResult::last_finish_ns() const {
  return *std::max_element(finish_ns.begin(), finish_ns.end());
}

absl::StatusOr<AstraResult> SimulateAstra(const AstraWorkload& workload,
                                          const AstraNetwork& network, const AstraSystem& system,
                                          const AstraOptions& options) {
  RETURN_IF_ERROR(network.Verify());
  RETURN_IF_ERROR(system.Verify(network));
  RETURN_IF_ERROR(workload.Verify(network.npus()));
  for (const AstraProgram& program : workload.programs) {
    for (const AstraNode& node : program.nodes) {
      if (node.kind != AstraNodeKind::kCollective || system.replay_only ||
          node.collective == AstraCollective::kReplay) {
        continue;
      }
      RETURN_IF_ERROR(CheckCollective(node, workload, network, system));
    }
  }
  astra::Simulation simulation(workload, network, system, options.memo);
  RETURN_IF_ERROR(simulation.Run(options.max_events));
  return simulation.Result();
}

}  // namespace plancast
