#ifndef PLANCAST_TESTS_EXECUTOR_LOWER_REFERENCE_H_
#define PLANCAST_TESTS_EXECUTOR_LOWER_REFERENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/link_sharing.h"
#include "cluster/machine.h"
#include "executor/realise.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// The flat side of "folded equals flat": every rank lowered by itself from its
// mesh coordinates, groups and routes enumerated rank by rank, and run by a plain
// time-stepped simulator with its own max-min. Small, slow, and sharing no code
// with executor/fold, the task tables, the simulator or the fluid kernel.

struct ReferenceTask {
  bool is_comm = false;
  int32_t stream = 0;
  int64_t duration_ps = 0;          // of a kernel
  int32_t meeting = -1;             // of a communication
  int32_t calls = 0, launches = 1;  // of its host: before the first launch, and all launches
  bool captured = false;            // launched by a CUDA graph
  bool begins_graph = false;        // the first task of one
  bool host_sync = false;
  std::vector<int32_t> deps;  // tasks of the same rank
  // Identity within the program, for comparing multisets.
  int32_t instance = 0, layer = 0, block_task = 0;
};

struct ReferenceRank {
  int32_t program = 0;
  std::vector<ReferenceTask> tasks;  // in issue order
};

// One communication of one group.
struct ReferenceMeeting {
  std::vector<int64_t> ranks;  // ascending
  RealisedCollective realised;
  // (resource, coefficient): what it loads per byte of work.
  std::vector<std::pair<int32_t, int64_t>> loads;
  int32_t priority = 0;  // the lowest goes first
};

struct ReferenceLowering {
  bool overlaps_iterations = false;  // of a graph by itself
  std::vector<ReferenceRank> ranks;
  std::vector<ReferenceMeeting> meetings;
  std::vector<int64_t> capacity;  // per resource, bytes a second
};

// Several jobs on one machine, one after another: `devices[i]` of the machine is
// device i of the job's mesh.
struct ReferenceJob {
  const ExecutionGraph* graph = nullptr;
  std::vector<int64_t> devices;
  CommPricer::RealiseFn realise;
};
ReferenceLowering LowerReference(const std::vector<ReferenceJob>& jobs, const Machine& machine,
                                 const KernelCostModel& costs);
// One on the first devices.
ReferenceLowering LowerReference(const ExecutionGraph& graph, const Machine& machine,
                                 const KernelCostModel& costs,
                                 const CommPricer::RealiseFn& realise);

struct ReferenceTimes {
  // Per rank, per task in issue order.
  std::vector<std::vector<int64_t>> start, end;
  int64_t makespan_ps = 0;
  bool deadlock = false;
};

// How a rank is run.
struct ReferenceHost {
  int64_t start_ps = 0, launch_ps = 0, sync_ps = 0;
  bool cuda_graphs = false;
  int64_t graph_launch_ps = 0;
  // The time that a kernel takes while its rank communicates, against alone;
  // fixed point, 2^-20.
  int64_t slowdown_q20 = int64_t{1} << 20;
};

// `comm_slowdown_q20`: the time that the transfer of a communication takes while a
// kernel runs on any of its ranks, against alone.
ReferenceTimes RunReference(const ReferenceLowering& lowering, const ReferenceHost& host,
                            LinkSharing link_sharing = LinkSharing::kMaxMin,
                            int64_t comm_slowdown_q20 = int64_t{1} << 20);
// A host for every rank.
ReferenceTimes RunReference(const ReferenceLowering& lowering, std::vector<ReferenceHost> hosts,
                            LinkSharing link_sharing = LinkSharing::kMaxMin,
                            int64_t comm_slowdown_q20 = int64_t{1} << 20);

// Peak bytes of a rank, event by event.
int64_t ReferencePeak(const ExecutionGraph& graph, int32_t program);

}  // namespace plancast

#endif  // PLANCAST_TESTS_EXECUTOR_LOWER_REFERENCE_H_
