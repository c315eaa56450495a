#include "tests/executor/graph_builder.h"

#include <algorithm>

#include "base/check.h"

namespace plancast {
namespace {

template <typename Spec>
int32_t IndexOf(std::vector<Spec>& specs, const Spec& spec) {
  const auto found = std::find(specs.begin(), specs.end(), spec);
  if (found != specs.end()) return static_cast<int32_t>(found - specs.begin());
  specs.push_back(spec);
  return static_cast<int32_t>(specs.size()) - 1;
}

void AddTask(Block& block, TaskKind kind, int32_t spec, StreamKind stream, Purpose purpose,
             const std::vector<int>& deps) {
  block.kind.push_back(kind);
  block.spec.push_back(spec);
  block.stream.push_back(stream);
  block.purpose.push_back(purpose);
  block.flags.push_back(0);
  block.label.push_back("t" + std::to_string(block.label.size()));
  block.deps.insert(block.deps.end(), deps.begin(), deps.end());
  block.dep_begin.push_back(static_cast<int32_t>(block.deps.size()));
}

}  // namespace

Machine::Spec UnitMachine(int64_t hosts, int64_t gpus_per_host, int64_t gpus_per_nic) {
  Machine::Spec spec;
  spec.name = "unit";
  spec.device.name = "unit";
  spec.device.sms = 100;
  spec.device.memory_bytes = 1e11;
  spec.device.memory_bytes_per_s = 1e12;
  spec.device.bf16_flops = 1e14;
  spec.hosts = hosts;
  spec.gpus_per_host = gpus_per_host;
  spec.intra_bytes_per_s = 1e11;
  spec.intra_latency_s = 1e-6;
  spec.nics_per_host = std::max<int64_t>(gpus_per_host / gpus_per_nic, 1);
  spec.nic_bytes_per_s = 1e10;
  spec.nic_latency_s = 5e-6;
  spec.source = "made up";
  return spec;
}

std::optional<KernelCost> UnitCost::Estimate(const KernelSpec& kernel,
                                             const DeviceType& device) const {
  KernelCost cost;
  cost.seconds_alone = kernel.flops;
  if (device.boost_mhz > 0) cost.seconds_alone *= 1000 / device.boost_mhz;
  cost.factor = "unit/kernel";
  cost.factor_sigma = 0.1;
  return cost;
}

GraphBuilder::GraphBuilder(std::vector<MeshAxis> axes) {
  absl::StatusOr<DeviceMesh> mesh = DeviceMesh::Create(std::move(axes));
  PLANCAST_CHECK_OK(mesh);
  graph_.mesh = *mesh;
}

GraphBuilder& GraphBuilder::Block(const std::string& name, int in_ports) {
  graph_.blocks.emplace_back();
  graph_.blocks.back().name = name;
  graph_.blocks.back().num_in_ports = in_ports;
  graph_.blocks.back().dep_begin.push_back(0);
  return *this;
}

GraphBuilder& GraphBuilder::Kernel(double seconds, std::vector<int> deps, Purpose purpose,
                                   StreamKind stream) {
  KernelSpec kernel;
  kernel.label = "unit";
  kernel.flops = seconds;
  AddTask(graph_.blocks.back(), TaskKind::kKernel, IndexOf(graph_.kernels, kernel), stream, purpose,
          deps);
  return *this;
}

GraphBuilder& GraphBuilder::Comm(CollectiveKind kind, int64_t bytes, std::vector<int> axes,
                                 std::vector<int> deps, Purpose purpose, StreamKind stream) {
  CommSpec comm;
  comm.kind = kind;
  comm.bytes = bytes;
  comm.axes = std::move(axes);
  comm.peer_offset = kind == CollectiveKind::kSendRecv ? 1 : 0;
  AddTask(graph_.blocks.back(), TaskKind::kComm, IndexOf(graph_.comms, comm), stream, purpose,
          deps);
  return *this;
}

GraphBuilder& GraphBuilder::Meets() {
  graph_.blocks.back().rendezvous_task = last_task();
  return *this;
}

GraphBuilder& GraphBuilder::HostSync() {
  graph_.blocks.back().flags.back() |= plancast::Block::kHostSync;
  return *this;
}

GraphBuilder& GraphBuilder::Memory(bool after, int64_t delta, MemoryKind kind,
                                   const std::string& tensor) {
  plancast::Block& block = graph_.blocks.back();
  const auto found = std::find(block.tensors.begin(), block.tensors.end(), tensor);
  const auto number = static_cast<uint16_t>(found - block.tensors.begin());
  if (found == block.tensors.end()) block.tensors.push_back(tensor);
  block.memory.push_back({last_task(), after, kind, number, delta});
  return *this;
}

GraphBuilder& GraphBuilder::OutPort(int task) {
  graph_.blocks.back().out_ports.push_back(task);
  return *this;
}

GraphBuilder& GraphBuilder::Program(const std::string& name,
                                    std::vector<std::pair<int, int64_t>> where) {
  graph_.programs.emplace_back();
  graph_.programs.back().name = name;
  graph_.programs.back().where = std::move(where);
  return *this;
}

GraphBuilder& GraphBuilder::Run(const std::string& block, std::vector<Join> joins, int layers,
                                int micro_batch, int rendezvous) {
  plancast::Program& program = graph_.programs.back();
  Instance instance;
  for (size_t b = 0; b < graph_.blocks.size(); ++b) {
    if (graph_.blocks[b].name == block) instance.block = static_cast<int32_t>(b);
  }
  instance.layer_count = layers;
  instance.micro_batch = micro_batch;
  instance.rendezvous = rendezvous;
  instance.join_begin = static_cast<int32_t>(program.joins.size());
  program.joins.insert(program.joins.end(), joins.begin(), joins.end());
  instance.join_end = static_cast<int32_t>(program.joins.size());
  program.instances.push_back(instance);
  if (rendezvous >= 0) {
    graph_.rendezvous[rendezvous].parties.push_back(
        {static_cast<int32_t>(graph_.programs.size()) - 1, last_instance()});
  }
  return *this;
}

int GraphBuilder::Rendezvous() {
  graph_.rendezvous.emplace_back();
  return static_cast<int>(graph_.rendezvous.size()) - 1;
}

}  // namespace plancast
