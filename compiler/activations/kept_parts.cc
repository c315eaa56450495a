#include "compiler/activations/kept_parts.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/activations/append_tasks.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "graph/execution/kept_tensors.h"

namespace plancast {
namespace {

// Rounded up.
int64_t PartOf(const KeptCopies& kept, const DeviceMesh& mesh) {
  const int64_t ranks = mesh.SizeOf(kept.axes);
  return (kept.bytes + ranks - 1) / ranks;
}

// Their numbers in the forward block. Others may have the name of one, such as parts of it or
// sums that become it.
std::vector<uint16_t> TensorsKeptBy(const Block& forward, const std::vector<KeptCopies>& kept) {
  std::vector<int64_t> left = KeptBytes(forward);
  std::vector<uint16_t> numbers;
  for (const KeptCopies& tensor : kept) {
    size_t at = 0;
    while (at < left.size() && (forward.tensors[at] != tensor.name || left[at] != tensor.bytes)) {
      ++at;
    }
    PLANCAST_CHECK_LT(at, left.size()) << tensor.name << " is not kept";
    numbers.push_back(static_cast<uint16_t>(at));
    left[at] = 0;
  }
  return numbers;
}

}  // namespace

std::vector<KeptCopies> KeptOver(const BodyBlocks& body, const std::vector<int>& axes) {
  std::vector<KeptCopies> over;
  for (const KeptCopies& kept : body.kept) {
    KeptCopies own = kept;
    own.axes.clear();
    std::set_intersection(kept.axes.begin(), kept.axes.end(), axes.begin(), axes.end(),
                          std::back_inserter(own.axes));
    if (!own.axes.empty()) over.push_back(std::move(own));
  }
  return over;
}

BlockTemplate KeepingParts(const BlockTemplate& forward, const std::vector<KeptCopies>& kept,
                           const DeviceMesh& mesh) {
  const Block& block = forward.block;
  BlockBuilder builder(block.name, block.num_in_ports);
  const int first = AppendTasks(forward, BlockBuilder::kNone, &builder);
  const std::vector<uint16_t> tensors = TensorsKeptBy(block, kept);
  for (size_t k = 0; k < kept.size(); ++k) {
    const int64_t part = PartOf(kept[k], mesh);
    const auto bytes = static_cast<double>(part);
    const int copy =
        builder.AddKernel(CopyKernel("keep_part", bytes, bytes), Purpose::kForward,
                          absl::StrCat("part of ", kept[k].name), {first + block.size() - 1});
    builder.AddMemory(copy, /*after=*/false, MemoryKind::kActivations,
                      builder.AddTensor(absl::StrCat(kept[k].name, " part")), part);
    builder.AddMemory(copy, /*after=*/true, MemoryKind::kActivations, tensors[k], -kept[k].bytes);
  }
  AddOutPorts(block, first, &builder);
  return std::move(builder).Build();
}

BlockTemplate GatheringParts(const BlockTemplate& backward, const std::vector<KeptCopies>& kept,
                             const DeviceMesh& mesh) {
  const Block& block = backward.block;
  BlockBuilder builder(block.name, block.num_in_ports);
  const std::vector<int> ports = InPorts(block.num_in_ports);
  int last = BlockBuilder::kNone;
  for (const KeptCopies& whole : kept) {
    CommSpec comm;
    comm.kind = CollectiveKind::kAllGather;
    comm.bytes = whole.bytes;
    comm.axes = whole.axes;
    last = builder.AddComm(comm, StreamKind::kModelComm, PurposeOfAxes(mesh, whole.axes),
                           absl::StrCat("gather ", whole.name), ports);
  }
  const int first = AppendTasks(backward, last, &builder);
  for (size_t k = 0; k < kept.size(); ++k) {
    const auto task = static_cast<int>(k);
    // Where gradients of weights are made apart, those alone may read it.
    builder.AddMemory(task, /*after=*/false, MemoryKind::kActivations,
                      builder.AddTensor(kept[k].name), kept[k].bytes);
    builder.AddMemory(task, /*after=*/true, MemoryKind::kActivations,
                      builder.AddTensor(absl::StrCat(kept[k].name, " part")),
                      -PartOf(kept[k], mesh));
  }
  AddOutPorts(block, first, &builder);
  return std::move(builder).Build();
}

}  // namespace plancast
