#ifndef PLANCAST_GRAPH_EXECUTION_EXECUTION_GRAPH_H_
#define PLANCAST_GRAPH_EXECUTION_EXECUTION_GRAPH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "base/enum_names.h"
#include "cluster/device_mesh.h"
#include "graph/collective_kind.h"
#include "graph/dtype.h"
#include "graph/execution/comm_spec.h"
#include "graph/execution/stream_kind.h"
#include "graph/kernel_spec.h"

namespace plancast {

// What a task is for; attribution needs nothing else of the strategy.
enum class Purpose : uint8_t {
  kForward,
  kBackward,
  kRecompute,
  kTp,
  kDp,
  kPp,
  kCp,
  kEp,
  kOffload,  // copies between the device and its host's memory, or another device's
  kOptimizer,
  kOther,
};
inline constexpr auto kPurposeNames =
    NamesOf<Purpose>("forward", "backward", "recompute", "tp", "dp", "pp", "cp", "ep", "offload",
                     "optimizer", "other");
inline constexpr int kNumPurposes = kPurposeNames.size();

enum class TaskKind : uint8_t { kKernel, kComm };

// What device memory holds.
enum class MemoryKind : uint8_t { kParameters, kGradients, kOptimizer, kActivations, kWorkspace };
inline constexpr auto kMemoryKindNames =
    NamesOf<MemoryKind>("parameters", "gradients", "optimizer", "activations", "workspace");
inline constexpr int kNumMemoryKinds = kMemoryKindNames.size();

// The pool of a caching allocator that a tensor comes from: allocators keep one for each
// stream that tensors are allocated on, and what one has is of no use to another.
enum class MemoryPool : uint8_t { kCompute, kGather, kReduce };
inline constexpr int kNumMemoryPools = 3;

// A change of live memory in issue order: before the task is issued (an
// output or workspace is allocated) or after it (its last use is over).
struct MemoryEvent {
  int32_t task = 0;
  bool after = false;
  MemoryKind kind = MemoryKind::kActivations;
  uint16_t tensor = 0;  // into Block::tensors
  int64_t delta = 0;    // bytes
  // Of what comes before the task: ahead of its results, which may take the place of what
  // is freed so (an op of several kernels that is one task here).
  bool early = false;
  MemoryPool pool = MemoryPool::kCompute;
};

// A tensor that is alive when a block begins or ends and changes hands there:
// who makes it and who frees it call it by names of their own.
struct PortMemory {
  uint16_t tensor = 0;  // into Block::tensors
  int64_t bytes = 0;
  bool forward = false;  // of a pair: it is the forward pass's
};

// The tasks of one module body in one phase on one device, without layer
// index, micro-batch or absolute id. Struct of arrays, in issue order.
//
// Invariants (Verify): dependencies point to earlier tasks or in-ports;
// `memory` is sorted by (task, after) and names tensors; specs are in range.
struct Block {
  std::string name;  // `layers.F`, `layers.B`, `optimizer`
  std::vector<TaskKind> kind;
  std::vector<int32_t> spec;  // into ExecutionGraph::kernels or ::comms
  std::vector<StreamKind> stream;
  std::vector<Purpose> purpose;
  std::vector<uint8_t> flags;      // kHostSync, kPairForward
  std::vector<std::string> label;  // for traces and dumps: `attn.qkv`
  std::vector<int32_t> dep_begin;  // CSR, size tasks + 1
  std::vector<int32_t> deps;       // >= 0: task; < 0: in-port ~dep
  int32_t num_in_ports = 0;
  std::vector<int32_t> out_ports;  // task that completes each out-port; < 0: passes in-port ~x on
  std::vector<MemoryEvent> memory;
  std::vector<std::string> tensors;  // what memory is for: `layers.*.mlp.fc1.y`
  // What the block takes over from the one before it, and what it hands on. No
  // memory changes by it: the events hold all of that.
  std::vector<PortMemory> takes, gives;
  // The task that meets other programs (Instance::rendezvous), or -1.
  int32_t rendezvous_task = -1;
  // What a repeat of it adds to what is kept in the memory of the host, or takes from it.
  int64_t host_bytes = 0;
  int32_t layers = 1;  // of the model, that one repeat runs
  // Of a pair (Instance::forward), how many of its in-ports and out-ports are the forward pass's;
  // those come before the backward pass's.
  int32_t forward_in_ports = 0, forward_out_ports = 0;

  static constexpr uint8_t kHostSync = 1;     // the host waits for the task
  static constexpr uint8_t kPairForward = 2;  // of a pair: the task is the forward pass's
  int32_t size() const { return static_cast<int32_t>(kind.size()); }
  bool IsPairForward(int32_t task) const { return (flags[task] & kPairForward) != 0; }
};

enum class Phase : uint8_t { kForward, kBackward, kWeight, kOptimizer, kComm };
inline constexpr auto kPhaseNames = NamesOf<Phase>("F", "B", "W", "opt", "comm");

// Instance `from` must have completed out-port `from_port` (all its tasks if
// -1) before in-port `to_port` of this instance is ready (any of its tasks if
// -1). `from` is an earlier instance of the same program.
struct Join {
  int32_t from = 0;
  int16_t from_port = -1;
  int16_t to_port = -1;
};

// A block run once for each of `layer_count` consecutive layers (of Block::layers each): out-ports
// of one repeat are the in-ports of the next.
struct Instance {
  int32_t block = 0;
  int32_t layer_begin = 0, layer_count = 1;
  int32_t micro_batch = 0;
  int32_t chunk = 0;
  Phase phase = Phase::kForward;
  int32_t rendezvous = -1;               // into ExecutionGraph::rendezvous
  int32_t join_begin = 0, join_end = 0;  // into Program::joins
  // Of a pair, the forward pass of another micro-batch whose tasks take turns with those of this
  // backward pass, through as many layers. micro_batch -1: it is no pair.
  struct Forward {
    int32_t micro_batch = -1, chunk = 0, layer_begin = 0;

    friend bool operator==(const Forward& a, const Forward& b) {
      return a.micro_batch == b.micro_batch && a.chunk == b.chunk && a.layer_begin == b.layer_begin;
    }
  };
  Forward forward = {};

  bool pairs() const { return forward.micro_batch >= 0; }
  // The micro-batch of what a pair does forward, or of everything else.
  int32_t MicroBatchOf(bool of_forward) const {
    return of_forward ? forward.micro_batch : micro_batch;
  }
};

// The first of the layers that a repeat of an instance runs; `forward`: of what a pair does
// forward.
inline int32_t LayerOf(const Block& block, const Instance& instance, int32_t repeat,
                       bool forward = false) {
  return (forward ? instance.forward.layer_begin : instance.layer_begin) + repeat * block.layers;
}

// What all ranks with the same pipeline coordinate run, in issue order.
struct Program {
  std::string name;                            // `stage 3`
  std::vector<std::pair<int, int64_t>> where;  // (mesh axis, coordinate): the program class
  int32_t stage_mesh =
      -1;  // into ExecutionGraph::stage_meshes, of which `where` is; -1: the plan's
  std::vector<Instance> instances;
  std::vector<Join> joins;
  int64_t static_bytes[kNumMemoryKinds] = {};  // parameters, gradients, optimizer state
  int64_t host_bytes = 0;                      // likewise, in the memory of its host
};

// A communication that joins instances of several programs (pipeline send and
// receive, an all-reduce over all stages): it starts when all have issued it
// and ends for all at once.
struct Rendezvous {
  struct Party {
    int32_t program = 0, instance = 0;
  };
  absl::InlinedVector<Party, 2> parties;
};

// Routed work that differs along mesh axes: experts with unlike expected load.
struct Skew {
  std::vector<int> axes;      // outermost first; empty: there is none
  std::vector<double> loads;  // against the mean, by coordinate along the axes

  bool empty() const { return axes.empty(); }
  // The first coordinate along the axes that has the load of a device; 0 without skew.
  int64_t PlaceOf(const DeviceMesh& mesh, int64_t device) const;
  // The largest load, 1 without skew.
  double Busiest() const;
};

// The distributed execution graph: structure, no time. Nothing in it grows
// with ranks, and blocks do not grow with layers or micro-batches; but where stages have meshes
// of their own (`stage_meshes`), reshards list what each device sends.
struct ExecutionGraph {
  DeviceMesh mesh;  // with stage meshes: one axis of all devices
  std::vector<StageMesh> stage_meshes;
  std::vector<Reshard> reshards;
  Skew skew;                        // of the kernels that are routed
  std::vector<KernelSpec> kernels;  // distinct
  std::vector<CommSpec> comms;      // distinct
  std::vector<Block> blocks;
  std::vector<Program> programs;
  std::vector<Rendezvous> rendezvous;
  // A device begins the next iteration when it has ended this one, whatever others still do: what
  // it does first waits for nothing that ends an iteration elsewhere.
  bool overlaps_iterations = false;

  // The mesh whose axes a program's place, a communication's group is said in.
  const DeviceMesh& MeshOf(const Program& program) const {
    return program.stage_mesh < 0 ? mesh : stage_meshes[program.stage_mesh].mesh;
  }
  const DeviceMesh& MeshOf(const CommSpec& comm) const {
    return comm.stage_mesh < 0 ? mesh : stage_meshes[comm.stage_mesh].mesh;
  }
  // From numbers in that mesh to those of the plan's devices.
  int64_t ShiftOf(const Program& program) const {
    return program.stage_mesh < 0 ? 0 : stage_meshes[program.stage_mesh].shift;
  }
  // How many devices run a program, and the lowest of them.
  int64_t DevicesOf(const Program& program) const;
  int64_t FirstDeviceOf(const Program& program) const;
  // The programs, ascending, whose devices a communication inside of one joins: those that differ
  // from it along its axes alone. They come to it in one order (Verify).
  std::vector<int32_t> JoinedBy(const CommSpec& comm, int32_t program) const;
  // Whether a device of the plan runs it.
  bool Runs(const Program& program, int64_t device) const;

  absl::Status Verify() const;
  // Stable text of blocks and programs, for goldens.
  std::string DebugString() const;
};

// Tasks of one device of program `program`, all instances unfolded.
int64_t UnfoldedTasks(const ExecutionGraph& graph, int program);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_EXECUTION_EXECUTION_GRAPH_H_
