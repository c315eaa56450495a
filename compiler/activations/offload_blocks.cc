#include "compiler/activations/offload_blocks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/activations/append_tasks.h"

namespace plancast {
namespace {

// One copy for each tensor behind `deps`; the last.
int AddCopies(const std::vector<KeptTensor>& tensors, bool out, const std::vector<int>& deps,
              BlockBuilder* builder) {
  int last = BlockBuilder::kNone;
  for (const KeptTensor& tensor : tensors) {
    CommSpec comm;
    comm.kind = out ? CollectiveKind::kCopyToHost : CollectiveKind::kCopyToDevice;
    comm.bytes = tensor.bytes;
    last =
        builder->AddComm(comm, out ? StreamKind::kCopyOut : StreamKind::kCopyIn, Purpose::kOffload,
                         absl::StrCat(out ? "copy out " : "copy in ", tensor.name), deps);
    builder->KeepOnHost(out ? tensor.bytes : -tensor.bytes);
  }
  return last;
}

// The tensors come into device memory before tasks `first`, `first` + 1, ..., or leave it
// behind task `last`.
void AllocateBefore(int first, const std::vector<KeptTensor>& tensors, BlockBuilder* builder) {
  for (const KeptTensor& tensor : tensors) {
    builder->AddMemory(first++, /*after=*/false, MemoryKind::kActivations,
                       builder->AddTensor(tensor.name), tensor.bytes);
  }
}
void FreeBehind(int last, const std::vector<KeptTensor>& tensors, BlockBuilder* builder) {
  for (const KeptTensor& tensor : tensors) {
    builder->AddMemory(last, /*after=*/true, MemoryKind::kActivations,
                       builder->AddTensor(tensor.name), -tensor.bytes);
  }
}

}  // namespace

int CopiesPort(const Block& block) {
  return std::min(block.num_in_ports, static_cast<int>(block.out_ports.size()));
}

BlockTemplate WithCopiesOut(const BlockTemplate& forward, const std::vector<KeptTensor>& before,
                            int data_ports) {
  const Block& block = forward.block;
  const int ports = block.num_in_ports;
  BlockBuilder builder(block.name, ports + 1);
  const int copied = AddCopies(before, /*out=*/true, InPorts(data_ports), &builder);
  const int first = AppendTasks(forward, /*gate=*/~ports, &builder);
  FreeBehind(builder.size() - 1, before, &builder);
  AddOutPorts(block, first, &builder, copied, CopiesPort(block));
  return std::move(builder).Build();
}

BlockTemplate WithCopiesIn(const BlockTemplate& backward, const std::vector<KeptTensor>& below,
                           bool waits, int data_ports) {
  const Block& block = backward.block;
  const int ports = block.num_in_ports;
  BlockBuilder builder(block.name, ports + (waits ? 1 : 0));
  const int there = AddCopies(below, /*out=*/false, InPorts(data_ports), &builder);
  const int first = AppendTasks(backward, waits ? ~ports : BlockBuilder::kNone, &builder);
  AllocateBefore(0, below, &builder);
  AddOutPorts(block, first, &builder, there, CopiesPort(block));
  return std::move(builder).Build();
}

BlockTemplate CopiesOut(const std::vector<KeptTensor>& tensors) {
  BlockBuilder builder("copy out");
  AddCopies(tensors, /*out=*/true, {}, &builder);
  FreeBehind(builder.size() - 1, tensors, &builder);
  return std::move(builder).Build();
}

BlockTemplate CopiesIn(const std::vector<KeptTensor>& tensors) {
  BlockBuilder builder("copy in");
  AddCopies(tensors, /*out=*/false, {}, &builder);
  AllocateBefore(0, tensors, &builder);
  return std::move(builder).Build();
}

}  // namespace plancast
