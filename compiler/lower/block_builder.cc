#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "compiler/lower/lower_block.h"

namespace plancast {
namespace {

template <typename Spec>
int InternIn(std::vector<Spec>* table, const Spec& spec) {
  auto it = std::find(table->begin(), table->end(), spec);
  if (it == table->end()) it = table->insert(table->end(), spec);
  return static_cast<int>(it - table->begin());
}

}  // namespace

int BlockBuilder::AddTask(TaskKind kind, int spec, StreamKind stream, Purpose purpose,
                          const std::string& label, const std::vector<int>& deps) {
  Block& block = out_.block;
  const int task = block.size();
  block.kind.push_back(kind);
  block.spec.push_back(spec);
  block.stream.push_back(stream);
  block.purpose.push_back(purpose);
  block.flags.push_back(0);
  block.label.push_back(label);
  std::vector<int> distinct(deps);
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (int dep : distinct) {
    if (dep != kNone) block.deps.push_back(dep);
  }
  block.dep_begin.push_back(static_cast<int32_t>(block.deps.size()));
  return task;
}

int BlockBuilder::AddKernel(const KernelSpec& kernel, Purpose purpose, const std::string& label,
                            const std::vector<int>& deps) {
  return AddTask(TaskKind::kKernel, InternIn(&out_.kernels, kernel), StreamKind::kCompute, purpose,
                 label, deps);
}

int BlockBuilder::AddComm(const CommSpec& comm, StreamKind stream, Purpose purpose,
                          const std::string& label, const std::vector<int>& deps) {
  return AddTask(TaskKind::kComm, InternIn(&out_.comms, comm), stream, purpose, label, deps);
}

void BlockBuilder::Fuse(int task, const FusedWork& work) {
  const Block& block = out_.block;
  CommSpec comm = out_.comms[block.spec[task]];
  comm.fused = work;
  bool alone = true;
  for (int t = 0; t < block.size(); ++t) {
    alone = alone && (t == task || !IsComm(t) || block.spec[t] != block.spec[task]);
  }
  if (alone) {
    out_.comms[block.spec[task]] = comm;
  } else {
    out_.block.spec[task] = InternIn(&out_.comms, comm);
  }
}

uint16_t BlockBuilder::AddTensor(std::string name) {
  PLANCAST_CHECK(out_.block.tensors.size() < std::numeric_limits<uint16_t>::max());
  out_.block.tensors.push_back(std::move(name));
  return static_cast<uint16_t>(out_.block.tensors.size() - 1);
}

void BlockBuilder::AddMemory(int task, bool after, MemoryKind kind, uint16_t tensor, int64_t delta,
                             bool early, MemoryPool pool) {
  if (delta != 0) out_.block.memory.push_back({task, after, kind, tensor, delta, early, pool});
}

// At one instant what is allocated counts before what is freed.
void SortMemory(Block* block) {
  std::stable_sort(block->memory.begin(), block->memory.end(),
                   [](const MemoryEvent& a, const MemoryEvent& b) {
                     return std::make_tuple(a.task, a.after, !a.early, a.delta < 0) <
                            std::make_tuple(b.task, b.after, !b.early, b.delta < 0);
                   });
}

BlockTemplate BlockBuilder::Build() && {
  SortMemory(&out_.block);
  return std::move(out_);
}

Purpose PurposeOfAxes(const DeviceMesh& mesh, const std::vector<int>& axes) {
  if (axes.empty()) return Purpose::kOther;
  const absl::string_view root = mesh.root(axes[0]);
  if (root == "tp") return Purpose::kTp;
  if (root == "dp") return Purpose::kDp;
  if (root == "pp") return Purpose::kPp;
  if (root == "cp") return Purpose::kCp;
  return Purpose::kOther;
}

Purpose PurposeOfRelayout(const DeviceMesh& mesh, CollectiveKind kind,
                          const std::vector<int>& axes) {
  const std::vector<int> experts = mesh.AxesOf("ep");
  const bool between_experts = std::all_of(axes.begin(), axes.end(), [&](int a) {
    return std::find(experts.begin(), experts.end(), a) != experts.end();
  });
  const bool moves = kind == CollectiveKind::kAllToAll || PurposeOfAxes(mesh, axes) != Purpose::kTp;
  return between_experts && moves ? Purpose::kEp : PurposeOfAxes(mesh, axes);
}

}  // namespace plancast
