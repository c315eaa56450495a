#ifndef PLANCAST_EXECUTOR_COMM_USES_H_
#define PLANCAST_EXECUTOR_COMM_USES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "collectives/realise.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// One communication as certain programs run it. Its groups cut the devices of
// `programs` into sets of `group.size()`.
struct CommUse {
  int32_t comm = 0;
  std::vector<int32_t> programs;  // ascending; several at a rendezvous
  // The program that sends, of a kSendRecv or kReshard one way or a copy to the host; kHost of a
  // copy from there; -1: data go both ways.
  int32_t source = -1;
  std::vector<StreamMask> streams;  // per program: those it runs in
  GroupPattern group;               // the group of the lowest device

  static constexpr int32_t kHost = 1 << 30;  // more than there are programs
  bool one_way() const { return source >= 0; }
};

struct CommUses {
  std::vector<CommUse> uses;
  int32_t num_comms = 0;
  std::vector<int32_t> of_comm;  // program * num_comms + comm, or -1
  std::vector<int32_t> of_rendezvous;

  int32_t OfComm(int32_t program, int32_t comm) const {
    return of_comm[static_cast<size_t>(program) * num_comms + comm];
  }
};

// Every distinct use. The graph must be verified. Errors: a rendezvous of
// programs at irregular coordinates.
absl::StatusOr<CommUses> FindCommUses(const ExecutionGraph& graph);

// The uses in sets whose groups are the same sets of devices: equal axes,
// programs and direction.
std::vector<std::vector<int32_t>> UsesByGroups(const ExecutionGraph& graph, const CommUses& uses);

// The group of a use that holds this device, where programs share one mesh.
GroupPattern GroupAround(const ExecutionGraph& graph, const CommUse& use, int64_t device);

// All groups of a use, device by device. Where programs have meshes of their own, groups of one
// use may be of unlike sizes.
std::vector<GroupPattern> GroupsOf(const ExecutionGraph& graph, const CommUse& use);

// The program that a device of the mesh runs.
int32_t ProgramOf(const ExecutionGraph& graph, int64_t device);

// The lowest device of a program.
int64_t FirstDevice(const ExecutionGraph& graph, int32_t program);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_COMM_USES_H_
