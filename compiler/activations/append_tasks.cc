#include "compiler/activations/append_tasks.h"

#include <string>
#include <vector>

namespace plancast {
namespace {

bool IsOfDataParallelism(StreamKind stream) {
  return stream == StreamKind::kGradComm || stream == StreamKind::kReplicaComm ||
         stream == StreamKind::kCopyOut || stream == StreamKind::kCopyIn;
}

}  // namespace

int AppendTasks(const BlockTemplate& in, int gate, BlockBuilder* builder) {
  const Block& block = in.block;
  const int first = builder->size();
  for (int t = 0; t < block.size(); ++t) {
    std::vector<int> deps;
    bool begins = !IsOfDataParallelism(block.stream[t]);
    for (int d = block.dep_begin[t]; d < block.dep_begin[t + 1]; ++d) {
      const int dep = block.deps[d];
      begins = begins && (dep < 0 || IsOfDataParallelism(block.stream[dep]));
      deps.push_back(dep < 0 ? dep : first + dep);
    }
    if (begins && gate != BlockBuilder::kNone) deps.push_back(gate);
    const int task =
        block.kind[t] == TaskKind::kKernel
            ? builder->AddKernel(in.kernels[block.spec[t]], block.purpose[t], block.label[t], deps)
            : builder->AddComm(in.comms[block.spec[t]], block.stream[t], block.purpose[t],
                               block.label[t], deps);
    if ((block.flags[t] & Block::kHostSync) != 0) builder->MarkHostSync(task);
  }
  for (const BlockTemplate::Gradient& g : in.gradients) {
    builder->AddGradient(first + g.task, g.elements, g.tensor, g.further);
  }
  for (const int task : in.further) builder->MarkFurther(first + task);
  for (const std::string& tensor : block.tensors) builder->AddTensor(tensor);
  for (const MemoryEvent& e : block.memory) {
    builder->AddMemory(first + e.task, e.after, e.kind, e.tensor, e.delta, e.early, e.pool);
  }
  for (const PortMemory& take : block.takes) builder->Take(take.tensor, take.bytes);
  for (const PortMemory& give : block.gives) builder->Give(give.tensor, give.bytes);
  return first;
}

std::vector<int> InPorts(int count) {
  std::vector<int> ports;
  for (int port = 0; port < count; ++port) ports.push_back(~port);
  return ports;
}

void AddOutPorts(const Block& block, int first, BlockBuilder* builder, int more, int at) {
  const auto ports = static_cast<int>(block.out_ports.size());
  for (int i = 0; i <= ports; ++i) {
    if (i == at && more != BlockBuilder::kNone) builder->AddOutPort(more);
    if (i == ports) break;
    const int port = block.out_ports[i];
    builder->AddOutPort(port < 0 ? port : first + port);
  }
}

}  // namespace plancast
