#include "executor/simulate/index/task_index.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

// Bits of a Place.
constexpr int32_t kMostInstances = 1 << 25, kMostLayers = 1 << 14, kMostTasks = 1 << 24;

// What each task waits for, less what its stream has waited for before.
void IndexWaits(const Block& block, BlockIndex& index) {
  int32_t known[kNumStreams][kNumStreams];
  std::fill_n(&known[0][0], kNumStreams * kNumStreams, -1);
  std::vector<StreamMask> seen(block.num_in_ports);  // per port: streams that waited for it
  for (int32_t t = 0; t < block.size(); ++t) {
    index.dep_begin.push_back(static_cast<int32_t>(index.deps.size()));
    index.port_begin.push_back(static_cast<int32_t>(index.ports.size()));
    const int stream = static_cast<int>(block.stream[t]);
    uint32_t streams = 0;
    for (int32_t d = block.dep_begin[t]; d < block.dep_begin[t + 1]; ++d) {
      const int32_t dep = block.deps[d];
      if (dep < 0) {
        StreamMask& waited = seen[~dep];
        if ((waited >> stream & 1) == 0) index.ports.push_back(~dep);
        waited |= MaskOf(stream);
        continue;
      }
      const int other = static_cast<int>(block.stream[dep]);
      if (other == stream || dep <= known[stream][other]) continue;
      known[stream][other] = dep;
      streams |= 1u << other;
    }
    for (; streams != 0; streams &= streams - 1) {
      index.deps.push_back(known[stream][__builtin_ctz(streams)]);
    }
  }
  index.dep_begin.push_back(static_cast<int32_t>(index.deps.size()));
  index.port_begin.push_back(static_cast<int32_t>(index.ports.size()));
}

// Nothing, in the memory of `index`.
void Clear(BlockIndex& index) {
  BlockIndex cleared;
  for (std::vector<int32_t> BlockIndex::*column :
       {&BlockIndex::order, &BlockIndex::rank, &BlockIndex::position, &BlockIndex::dep_begin,
        &BlockIndex::deps, &BlockIndex::port_begin, &BlockIndex::ports, &BlockIndex::launches,
        &BlockIndex::first_launch, &BlockIndex::sync_before}) {
    (index.*column).clear();
    (cleared.*column).swap(index.*column);
  }
  index.awaited.clear();
  cleared.awaited.swap(index.awaited);
  index = std::move(cleared);
}

// What a kernel takes of the host's time, in launches: until its first kernel is launched, and all.
struct HostCount {
  int32_t first = 0, all = 0;
};
HostCount CountOf(const KernelSpec& kernel) {
  if (kernel.launches == 0) return {};
  const int32_t all = kernel.host_launches();
  return {std::min(all, std::max(kernel.calls, 0) + 1), all};
}

void MakeIndex(const ExecutionGraph& graph, const Block& block, bool captured, BlockIndex& index) {
  Clear(index);
  index.size = block.size();
  index.captured = captured;
  index.num_in_ports = block.num_in_ports;
  index.out_ports = block.out_ports;
  index.stream = block.stream.data();
  index.rank.resize(block.size());
  index.order.resize(block.size());
  int32_t launches = 0, sync = -1;
  for (int32_t t = 0; t < block.size(); ++t) {
    const int stream = static_cast<int>(block.stream[t]);
    const bool kernel = block.kind[t] == TaskKind::kKernel;
    index.rank[t] = index.order_begin[stream + 1]++;
    index.streams |= MaskOf(stream);
    if (kernel) index.kernel_streams |= MaskOf(stream);
    index.launches.push_back(launches);
    int32_t first = launches;
    if (!captured) {
      const HostCount count = kernel ? CountOf(graph.kernels[block.spec[t]]) : HostCount{1, 1};
      first += count.first;
      launches += count.all;
    }
    index.first_launch.push_back(first);
    index.sync_before.push_back(sync);
    if ((block.flags[t] & Block::kHostSync) != 0) sync = t;
  }
  index.launches.push_back(launches);
  index.sync_before.push_back(sync);
  index.syncs = sync >= 0;
  for (int s = 0; s < kNumStreams; ++s) index.order_begin[s + 1] += index.order_begin[s];
  for (int32_t t = 0; t < block.size(); ++t) {
    index.position.push_back(index.order_begin[static_cast<int>(block.stream[t])] + index.rank[t]);
    index.order[index.position[t]] = t;
  }
  IndexWaits(block, index);
  if (constexpr int kFirst = static_cast<int>(StreamKind::kCompute); index.Count(kFirst) > 0) {
    const int32_t task = index.order[index.order_begin[kFirst]];
    const int32_t ports = index.port_begin[task + 1] - index.port_begin[task];
    index.kernels_need_ports = ports == index.num_in_ports;
  }
  index.awaited.resize(block.size());
  for (const int32_t task : index.deps) index.awaited[task] = 1;
  for (uint32_t rest = index.streams; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const int32_t first = index.order[index.order_begin[stream]];
    for (int32_t d = index.dep_begin[first]; d < index.dep_begin[first + 1]; ++d) {
      if (block.stream[index.deps[d]] == StreamKind::kCompute)
        index.after_compute |= MaskOf(stream);
    }
  }
}

// Launches of CUDA graphs: what is captured and follows one another in one pass of
// a micro-batch over a chunk is one graph.
std::vector<int32_t> CountGraphs(const Program& program, const std::vector<BlockIndex>& blocks) {
  std::vector<int32_t> graphs;
  int32_t count = 0;
  const Instance* before = nullptr;  // if captured
  for (const Instance& instance : program.instances) {
    const bool captured = blocks[instance.block].captured;
    const bool goes_on = before != nullptr && before->phase == instance.phase &&
                         before->micro_batch == instance.micro_batch &&
                         before->chunk == instance.chunk;
    if (captured && !goes_on) ++count;
    before = captured ? &instance : nullptr;
    graphs.push_back(count);
  }
  return graphs;
}

// Of each block, whether a CUDA graph launches it. `programs`: those that use
// graphs; no block belongs to one that does and one that does not.
std::vector<bool> FindCaptured(const ExecutionGraph& graph, const std::vector<bool>& programs) {
  std::vector<bool> captured(graph.blocks.size());
  for (size_t p = 0; p < programs.size(); ++p) {
    if (!programs[p]) continue;
    for (const Instance& instance : graph.programs[p].instances) {
      captured[instance.block] = graph.blocks[instance.block].rendezvous_task < 0;
    }
  }
  for (size_t b = 0; b < graph.blocks.size(); ++b) {
    for (const uint8_t flags : graph.blocks[b].flags) {
      if ((flags & Block::kHostSync) != 0) captured[b] = false;
    }
  }
  return captured;
}

// What an instance of a block adds to the index of its program.
struct BlockSteps {
  int64_t tasks = 0, launches = 0;
  StreamMask streams = 0;
  bool syncs = false;
};

// `steps`: per block.
void MakeIndex(const Program& program, const std::vector<BlockSteps>& steps,
               const std::vector<BlockIndex>& blocks, ProgramIndex& index) {
  ProgramIndex fresh;
  fresh.instances_of_streams.swap(index.instances_of_streams);
  fresh.issue_begin.swap(index.issue_begin);
  fresh.launches_before.swap(index.launches_before);
  fresh.sync_before.swap(index.sync_before);
  index = std::move(fresh);
  index.instances = program.instances.data();
  index.joins = program.joins.data();
  const size_t instances = program.instances.size();
  index.issue_begin.resize(instances);
  index.launches_before.resize(instances);
  index.sync_before.resize(instances);
  std::vector<int32_t> times(blocks.size());  // how many instances a block has
  int64_t tasks = 0, launches = 0;
  int32_t sync = -1;
  for (size_t i = 0; i < instances; ++i) {
    const Instance& instance = program.instances[i];
    const BlockSteps& step = steps[instance.block];
    index.issue_begin[i] = tasks;
    index.launches_before[i] = launches;
    index.sync_before[i] = sync;
    tasks += step.tasks * instance.layer_count;
    launches += step.launches * instance.layer_count;
    if (step.syncs) sync = static_cast<int32_t>(i);
    ++times[instance.block];
  }
  index.tasks = tasks;
  index.syncs = sync >= 0;
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (times[b] == 0) continue;
    index.streams |= blocks[b].streams;
    index.kernel_streams |= blocks[b].kernel_streams;
    for (uint32_t rest = blocks[b].streams; rest != 0; rest &= rest - 1) {
      index.stream_begin[__builtin_ctz(rest) + 1] += times[b];
    }
  }
  for (int s = 0; s < kNumStreams; ++s) index.stream_begin[s + 1] += index.stream_begin[s];
  index.instances_of_streams.resize(index.stream_begin[kNumStreams]);
  int32_t* at[kNumStreams];
  for (int s = 0; s < kNumStreams; ++s)
    at[s] = index.instances_of_streams.data() + index.stream_begin[s];
  for (size_t i = 0; i < instances; ++i) {
    for (uint32_t rest = steps[program.instances[i].block].streams; rest != 0; rest &= rest - 1) {
      *at[__builtin_ctz(rest)]++ = static_cast<int32_t>(i);
    }
  }
}

}  // namespace

absl::StatusOr<TaskIndex> TaskIndex::Create(const ExecutionGraph& graph,
                                            const std::vector<bool>& cuda_graphs) {
  return Create(graph, cuda_graphs, TaskIndex());
}

absl::StatusOr<TaskIndex> TaskIndex::Create(const ExecutionGraph& graph,
                                            const std::vector<bool>& cuda_graphs,
                                            TaskIndex memory) {
  TaskIndex index = std::move(memory);
  index.graph_ = &graph;
  index.blocks_.resize(graph.blocks.size());
  index.programs_.resize(graph.programs.size());
  const std::vector<bool> captured = FindCaptured(graph, cuda_graphs);
  std::vector<BlockSteps> steps;
  for (size_t b = 0; b < graph.blocks.size(); ++b) {
    const Block& block = graph.blocks[b];
    if (block.size() >= kMostTasks) {
      return absl::InvalidArgumentError(absl::StrCat("block `", block.name, "` has ", block.size(),
                                                     " tasks; at most ", kMostTasks - 1,
                                                     " are possible. Cut it into several."));
    }
    MakeIndex(graph, block, captured[b], index.blocks_[b]);
    const BlockIndex& made = index.blocks_[b];
    steps.push_back({made.size, made.launches.back(), made.streams, made.syncs});
  }
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    const Program& program = graph.programs[p];
    int32_t layers = 1;
    for (const Instance& instance : program.instances) {
      layers = std::max(layers, instance.layer_count);
    }
    if (program.instances.size() >= kMostInstances || layers >= kMostLayers) {
      return absl::InvalidArgumentError(
          absl::StrCat("program `", program.name, "` has ", program.instances.size(),
                       " instances of up to ", layers, " layers; fewer than ", kMostInstances,
                       " and ", kMostLayers, " are possible. Take fewer micro-batches."));
    }
    MakeIndex(program, steps, index.blocks_, index.programs_[p]);
    if (p < cuda_graphs.size() && cuda_graphs[p]) {
      index.programs_[p].graphs = CountGraphs(program, index.blocks_);
    }
  }
  return index;
}

int32_t TaskIndex::InstanceBefore(int32_t program, int stream, int32_t instance) const {
  // Most often one of the last.
  constexpr int32_t kFew = 8;
  const Instance* const instances = programs_[program].instances;
  int32_t before = instance - 1;
  for (const int32_t few = std::max(before - kFew, -1); before > few; --before) {
    if ((blocks_[instances[before].block].streams >> stream & 1) != 0) return before;
  }
  const ProgramIndex& index = programs_[program];
  const auto begin = index.instances_of_streams.begin() + index.stream_begin[stream];
  const auto at = std::lower_bound(
      begin, index.instances_of_streams.begin() + index.stream_begin[stream + 1], before + 1);
  return at == begin ? -1 : *(at - 1);
}

TaskRef TaskIndex::Predecessor(int32_t program, const TaskRef& ref) const {
  const int stream = StreamOf(program, ref);
  const BlockIndex& block = BlockAt(program, ref.instance);
  const int32_t rank = block.rank[ref.task];
  if (rank > 0) return {ref.instance, ref.layer, block.order[block.order_begin[stream] + rank - 1]};
  if (ref.layer > 0) return {ref.instance, ref.layer - 1, block.Last(stream)};
  const int32_t before = InstanceBefore(program, stream, ref.instance);
  if (before < 0) return {};
  return {before, InstanceOf(program, before).layer_count - 1,
          BlockAt(program, before).Last(stream)};
}

void TaskIndex::WaitsOf(int32_t program, const TaskRef& ref, Refs& to) const {
  const int own = StreamOf(program, ref);
  LookAtWaits(program, ref, [&to](const TaskRef& wait) {
    to.push_back(wait);
    return true;
  });
  std::sort(to.begin(), to.end(), [&](const TaskRef& a, const TaskRef& b) {
    const int x = StreamOf(program, a), y = StreamOf(program, b);
    return x != y ? x < y : PlaceOf(program, a) > PlaceOf(program, b);
  });
  int last = own;
  const auto kept = std::remove_if(to.begin(), to.end(), [&](const TaskRef& at) {
    const int stream = StreamOf(program, at);
    const bool drop = stream == last || stream == own;
    last = stream;
    return drop;
  });
  to.erase(kept, to.end());
}

TaskRef TaskIndex::SyncBefore(int32_t program, const TaskRef& ref) const {
  const BlockIndex& block = BlockAt(program, ref.instance);
  if (block.syncs) {
    const int32_t own = block.sync_before[ref.task];
    if (own >= 0) return {ref.instance, ref.layer, own};
    if (ref.layer > 0) return {ref.instance, ref.layer - 1, block.sync_before.back()};
  }
  const int32_t before = programs_[program].sync_before[ref.instance];
  if (before < 0) return {};
  return {before, InstanceOf(program, before).layer_count - 1,
          BlockAt(program, before).sync_before.back()};
}

TaskRef TaskIndex::AtRendezvous(int32_t rendezvous, int32_t program) const {
  for (const Rendezvous::Party& party : graph_->rendezvous[rendezvous].parties) {
    if (party.program != program) continue;
    const Instance& instance = InstanceOf(program, party.instance);
    return {party.instance, 0, graph_->blocks[instance.block].rendezvous_task};
  }
  return {};
}

}  // namespace plancast
