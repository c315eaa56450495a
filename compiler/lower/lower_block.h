#ifndef PLANCAST_COMPILER_LOWER_LOWER_BLOCK_H_
#define PLANCAST_COMPILER_LOWER_LOWER_BLOCK_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/body/body_plan.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// A block with its own tables of kernels and communications; `spec` indexes
// these until the block joins an execution graph.
struct BlockTemplate {
  Block block;
  std::vector<KernelSpec> kernels;
  std::vector<CommSpec> comms;
  // Which tasks make gradients of parameters, of how many elements, and of which tensor of
  // the body.
  struct Gradient {
    int task = 0;
    int64_t elements = 0;
    int tensor = -1;
    bool further = false;  // it adds to what pieces before it made
  };
  std::vector<Gradient> gradients;
  // Sums over LowerContext::outside that the block leaves to others, in the order of its tasks.
  std::vector<CommSpec> outside;
  // What of the block's results must be corrected when they are made, bytes.
  double corrected_bytes = 0;
  // What products of weight gradients read of each element of the sum that they add to and
  // write (SumFusion::kOwnType), bytes.
  double sum_read_bytes = 0;
  std::vector<int> further;  // tasks, ascending, that add to gradients of pieces before them
  bool tells_begin = false;  // its last out-port says when its compute may begin (ShardBlock)
  // Ops that run part by part beside what brings and takes their parts (comm_loops.h), as tasks
  // that are still whole: RunLoops (loop_tasks.h) cuts them.
  struct Loop {
    CommLoop how;
    std::vector<int> gathers, scatters;            // tasks
    std::vector<int> op;                           // tasks, in order
    std::vector<std::vector<KernelSpec>> kernels;  // of each part, in place of these
    ContextSteps steps;  // of a ring over cp, with all that the plan says settled
    // Bytes on the wire over those of the tensors: of what comes, and of sums.
    double wider = 1, wider_sums = 1;
    // What came lies part by part in memory, and is copied for others that read it.
    bool copies_whole = false;
  };
  std::vector<Loop> loops;
};

// Appends tasks to a block template.
class BlockBuilder {
 public:
  explicit BlockBuilder(std::string name, int in_ports = 0) {
    out_.block.name = std::move(name);
    out_.block.num_in_ports = in_ports;
    out_.block.dep_begin.push_back(0);
  }

  // `deps`: tasks, or in-ports as ~port; kNone entries are dropped.
  int AddKernel(const KernelSpec& kernel, Purpose purpose, const std::string& label,
                const std::vector<int>& deps);
  int AddComm(const CommSpec& comm, StreamKind stream, Purpose purpose, const std::string& label,
              const std::vector<int>& deps);
  // Ops run inside of a communication that is there already.
  void Fuse(int task, const FusedWork& work);
  // The number of a tensor to be named by memory events.
  uint16_t AddTensor(std::string name);
  void AddMemory(int task, bool after, MemoryKind kind, uint16_t tensor, int64_t delta,
                 bool early = false, MemoryPool pool = MemoryPool::kCompute);
  // The block takes a live tensor over at its beginning, or hands one on.
  // `forward`: of a pair, in its forward pass.
  void Take(uint16_t tensor, int64_t bytes, bool forward = false) {
    out_.block.takes.push_back({tensor, bytes, forward});
  }
  void Give(uint16_t tensor, int64_t bytes, bool forward = false) {
    out_.block.gives.push_back({tensor, bytes, forward});
  }
  // A repeat of the block keeps so many bytes more in the memory of the host.
  void KeepOnHost(int64_t bytes) { out_.block.host_bytes += bytes; }
  void MarkRendezvous(int task) { out_.block.rendezvous_task = task; }
  void MarkHostSync(int task) { out_.block.flags[task] |= Block::kHostSync; }
  void MarkPairForward(int task) { out_.block.flags[task] |= Block::kPairForward; }
  void AddGradient(int task, int64_t elements, int tensor, bool further = false) {
    out_.gradients.push_back({task, elements, tensor, further});
  }
  void MarkFurther(int task) { out_.further.push_back(task); }
  void LeaveOutside(const CommSpec& comm) { out_.outside.push_back(comm); }
  void CorrectLater(double bytes) { out_.corrected_bytes = std::max(out_.corrected_bytes, bytes); }
  BlockTemplate::Loop& LoopAt(size_t loop) {
    if (out_.loops.size() <= loop) out_.loops.resize(loop + 1);
    return out_.loops[loop];
  }
  void ReadSums(double element_bytes) { out_.sum_read_bytes = element_bytes; }
  void AddOutPort(int ready) { out_.block.out_ports.push_back(ready); }
  // The last out-port: what comes before compute.
  void TellBegin(int ready) {
    AddOutPort(ready);
    out_.tells_begin = true;
  }
  int size() const { return out_.block.size(); }
  bool IsComm(int task) const { return out_.block.kind[task] == TaskKind::kComm; }
  const KernelSpec& KernelOf(int task) const { return out_.kernels[out_.block.spec[task]]; }
  const std::string& name() const { return out_.block.name; }

  // Sorts the memory events and hands the block over.
  BlockTemplate Build() &&;

  static constexpr int kNone = INT32_MIN;  // ready from the start

 private:
  int AddTask(TaskKind kind, int spec, StreamKind stream, Purpose purpose, const std::string& label,
              const std::vector<int>& deps);

  BlockTemplate out_;
};

// Puts the memory events of a block in the order in which they happen.
void SortMemory(Block* block);

// Where the memory of a port's tensor is told of, as numbers of tensors of the blocks: what
// sharing it with a neighbour takes (shared_ports.h). -1: nowhere, or it is not that simple
// (passed on unread, quantised).
struct InPortMemory {
  int forward = -1;   // of the forward block, which takes it over
  int backward = -1;  // of the backward block, where that gives it up; else the forward one does
  int64_t bytes = 0;
  bool until_weights = false;  // `backward` is of the block of weight gradients
};
struct OutPortMemory {
  int forward = -1;  // of the forward block, which counts it as kept and as passed on
  int64_t bytes = 0;
  bool until_weights = false;  // it is kept until weight gradients are made
};

// A tensor that a body keeps from its forward to its backward pass, whole on ranks of several
// coordinates along `axes`.
struct KeptCopies {
  std::string name;  // in both blocks; in joined layers several have one, in order
  int64_t bytes = 0;
  std::vector<int> axes;  // of the mesh, ascending
};

// The forward and the backward block of one body. `weights`: what is left for a pass of its own
// (SplitBackward), without tasks: nothing.
struct BodyBlocks {
  BlockTemplate forward, backward, weights;
  std::vector<InPortMemory> in_ports;
  std::vector<OutPortMemory> out_ports;
  std::vector<KeptCopies> kept;
};
// `path`: the module's, as in `layers.*`, for names of tensors.
BodyBlocks LowerBody(const LowerContext& context, const BodyPlan& plan, const std::string& name,
                     const std::string& path);

// The purpose of a communication inside a body, by the root name of the first axis it runs over.
Purpose PurposeOfAxes(const DeviceMesh& mesh, const std::vector<int>& axes);
// The same for a relayout: what the axes that experts are cut over exchange is
// theirs, but for the collectives of the tensor parallelism beside it.
Purpose PurposeOfRelayout(const DeviceMesh& mesh, CollectiveKind kind,
                          const std::vector<int>& axes);
// Its queue: one a communicator, and ranks of experts have their own.
inline StreamKind StreamOf(Purpose purpose) {
  return purpose == Purpose::kEp ? StreamKind::kExpertComm : StreamKind::kModelComm;
}

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_LOWER_BLOCK_H_
