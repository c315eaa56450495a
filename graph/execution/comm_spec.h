#ifndef PLANCAST_GRAPH_EXECUTION_COMM_SPEC_H_
#define PLANCAST_GRAPH_EXECUTION_COMM_SPEC_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cluster/device_mesh.h"
#include "graph/collective_kind.h"
#include "graph/fused_work.h"
#include "graph/row_copies.h"

namespace plancast {

// A communication among the members of a group: the devices that differ only
// in the coordinates of `axes`. A kSendRecv joins a device with the one
// `peer_offset` further along the single axis. A kReshard joins the devices of two stages
// that send to each other (Reshard); it has no axes.
struct CommSpec {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t bytes = 0;      // in the unit of CollectiveKind
  std::vector<int> axes;  // mesh axes, outermost first
  int peer_offset = 0;
  std::string policy;     // name of an algorithm, or empty
  RowCopies copies = {};  // of an all-to-all: those of each row that `bytes` holds
  int stage_mesh = -1;    // into ExecutionGraph::stage_meshes, whose axes these are; -1: the plan's
  int reshard = -1;       // of a kReshard: into ExecutionGraph::reshards
  FusedWork fused = {};
  int sms = 0;          // that its kernels hold; 0: as many as NCCL's
  bool spared = false;  // products beside it are launched on the SMs that it leaves

  friend bool operator==(const CommSpec& a, const CommSpec& b) {
    return a.kind == b.kind && a.bytes == b.bytes && a.axes == b.axes &&
           a.peer_offset == b.peer_offset && a.policy == b.policy && a.copies == b.copies &&
           a.stage_mesh == b.stage_mesh && a.reshard == b.reshard && a.fused == b.fused &&
           a.sms == b.sms && a.spared == b.spared;
  }
  template <typename H>
  friend H AbslHashValue(H h, const CommSpec& s) {
    return H::combine(std::move(h), s.kind, s.bytes, s.axes, s.peer_offset, s.policy, s.copies,
                      s.stage_mesh, s.reshard, s.fused, s.sms, s.spared);
  }
};

// The mesh of a program whose stage is not like the others: a plan with all stages alike would
// have this mesh, and the program has a place in it. The devices there are those of the plan
// whose numbers are `shift` higher.
struct StageMesh {
  DeviceMesh mesh;
  int64_t shift = 0;
};

// A tensor between two stages with unlike meshes: the ways in which it may go from one to
// the other, of which the executor takes the cheapest. Devices are the plan's.
struct Reshard {
  struct Flow {
    int64_t from = 0, to = 0, bytes = 0;
  };
  struct Way {
    std::string name;  // `send_receive`, `scatter_gather.2`
    std::vector<Flow> flows;
    // What receivers make of it among themselves: an all_gather afterwards, or a broadcast that
    // goes on while they receive; bytes 0: they have it all.
    CommSpec after;
  };
  std::vector<Way> ways;
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_EXECUTION_COMM_SPEC_H_
