#ifndef PLANCAST_EXECUTOR_EXECUTOR_H_
#define PLANCAST_EXECUTOR_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/link_sharing.h"
#include "cluster/machine.h"
#include "collectives/realise.h"
#include "cost_models/kernel_cost.h"
#include "graph/execution/execution_graph.h"
#include "graph/execution/memory_overhead.h"

namespace plancast {

// How the framework runs; values come from a software profile.
struct RuntimeParams {
  double launch_s = 0;  // host time per kernel or collective launch
  // CUDA graphs: an instance of a block that meets no other program and for which
  // the host does not wait is captured; one graph launch takes the place of all
  // launches in it.
  bool cuda_graphs = false;
  double graph_launch_s = 0;  // host time per graph launch
  double host_sync_s = 0;     // extra host time after a host-synchronising task
  double iteration_s = 0;     // fixed host work per iteration (data loading, logging)
  // Transfer time inside hosts of collectives between kernels of a layer, against
  // isolated ones: 1.2 is 20 % longer.
  double comm_scale = 1.0;
  bool nominal_links = false;  // as their data sheets have them, not as measured
  // Collectives alone take what their chunk programs take (executor/chunks), not what
  // the closed form says.
  bool chunk_level = false;
  // Slow-down of every kernel while its device communicates, 0.1 is 10 % longer;
  // std::nullopt: what the GPU's data say of each kernel (cost_models/interference.h).
  std::optional<double> interference = 0.0;
  // Slow-down of every communication's transfer while a kernel runs on any of its
  // devices, 0.1 is 10 % longer; std::nullopt: what the GPU's data say of the
  // plan's kernels, on average over their time.
  std::optional<double> comm_interference = 0.0;
  // What kernels take longer because their parameters were gathered from several hosts, all of
  // which waited for the slowest: so much for each factor of e in their number.
  double gather_skew = 0;
  // How communications share links. By priority, those of model parallelism go
  // before messages of the pipeline, and these before gradients.
  LinkSharing link_sharing = LinkSharing::kMaxMin;
  // Else every communication has its links to itself (a what-if).
  bool shares_links = true;
  MemoryOverhead memory;  // what a device holds beyond live tensors
};

// Peak memory, bytes.
struct ClassMemory {
  int64_t bytes[kNumMemoryKinds] = {};  // live at the moment of the peak
  int64_t allocated = 0;                // their sum
  int64_t rounding = 0;                 // of blocks and segments of the allocator
  int64_t fragmentation = 0;            // segments that it holds and cannot use
  int64_t reserved = 0;                 // the sum of the three before
  int64_t nccl = 0;                     // buffers of communicators
  int64_t context = 0;                  // driver context, kernels, library workspaces
  int64_t device = 0;                   // reserved, nccl and context
  int64_t host = 0;                     // in addition, in the memory of its host
  // What the device offers, the smallest that runs the program; 0: not known.
  int64_t capacity = 0;
};

struct SimulateOptions {
  bool timeline = false;  // record slices
  // Of a timeline its slices alone, stream by stream instead of by start: the result's classes
  // say which programs they are.
  bool only_slices = false;
  bool shortcuts = true;  // without, nothing runs at once and no period is left out: equal, slower
  // What each of ExecutionGraph::kernels and ::comms takes, against its price;
  // empty: all 1.
  std::vector<double> kernel_time = {}, comm_time = {};

  // For callers that execute many graphs and know something of them already.
  bool verified = false;                             // graph.Verify() is known to be OK
  const std::vector<ClassMemory>* memory = nullptr;  // ReplayMemory of the same; null: not known
  // Asked once the makespan is known; false: the result holds nothing else.
  std::function<bool(int64_t makespan_ps)> wanted = nullptr;
};

// One task as it ran, on the representative of a device class.
struct Slice {
  int32_t device_class = 0;
  StreamKind stream = StreamKind::kCompute;
  Purpose purpose = Purpose::kForward;
  int32_t block = 0, task = 0;
  int32_t layer = 0, micro_batch = 0, chunk = 0;
  int64_t start_ps = 0, end_ps = 0;
};

// Where the time of a device goes: an exhaustive partition of [0, makespan] of
// the compute stream, picoseconds.
struct Breakdown {
  int64_t compute = 0, recompute = 0, exposed_tp = 0, exposed_dp = 0, exposed_pp = 0,
          exposed_cp = 0, exposed_ep = 0, exposed_offload = 0, bubble = 0, straggler = 0,
          launch = 0, optimizer = 0, other = 0;
  int64_t total() const;
  // Adds `times` times another.
  void Add(const Breakdown& other, int64_t times = 1);
};

struct DeviceClassResult {
  std::string name;  // `stage 3`
  int32_t program = 0;
  int64_t devices = 0;         // members
  int64_t representative = 0;  // smallest device id
  Breakdown breakdown;
  ClassMemory memory;
  int64_t finish_ps = 0;
};

struct Counters {
  int64_t tasks = 0;  // unfolded tasks of all ranks
  int64_t device_classes = 0, blocks = 0, instances = 0, materialised_tasks = 0;
};

// The error structure of a forecast: seconds of the critical compute path that
// depend on each shared latent factor, and its one-sigma relative error.
struct FactorShare {
  double seconds = 0;
  double sigma = 0;
  bool extrapolated = false;  // of kernels without measurements on this device
};

struct SimResult {
  int64_t makespan_ps = 0;
  Breakdown critical_path;  // of the longest chain across devices; sums to the makespan
  std::vector<DeviceClassResult> classes;
  Counters counters;
  std::vector<Slice> slices;  // if asked for, ordered by start
  std::map<std::string, FactorShare> factors;
  std::map<std::string, double> provenance_seconds;  // knowledge -> kernel seconds
  double own_variance_s2 = 0;
};

// realise -> fold -> simulate. Deterministic; no shared mutable state.
absl::StatusOr<SimResult> Execute(const ExecutionGraph& graph, const Machine& machine,
                                  const KernelCostModel& costs, const RuntimeParams& runtime,
                                  const SimulateOptions& options = {});

// Peak memory per program by replay of the issue order, without simulating
// time. Indexed like graph.programs.
std::vector<ClassMemory> ReplayMemory(const ExecutionGraph& graph, const RuntimeParams& runtime);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_EXECUTOR_H_
