#include "executor/attribution/summarise.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "executor/attribution/breakdown.h"
#include "executor/attribution/critical_path.h"

namespace plancast {
namespace {

void AppendSlices(const SimInput& in, const SimTrace& trace, int32_t entity, int stream, int32_t at,
                  std::vector<Slice>& slices) {
  const Instance& instance = in.index.InstanceOf(in.ProgramOf(entity), at);
  const Block& block = in.graph.blocks[instance.block];
  const BlockIndex& index = in.index.block(instance.block);
  for (int32_t layer = 0; layer < instance.layer_count; ++layer) {
    for (int32_t i = index.order_begin[stream]; i < index.order_begin[stream + 1]; ++i) {
      const TaskRef ref{at, layer, index.order[i]};
      Slice slice;
      slice.device_class = entity;
      slice.stream = static_cast<StreamKind>(stream);
      slice.purpose = block.purpose[ref.task];
      slice.block = instance.block;
      slice.task = ref.task;
      const bool forward = block.IsPairForward(ref.task);
      slice.layer = LayerOf(block, instance, layer, forward);
      slice.micro_batch = instance.MicroBatchOf(forward);
      slice.chunk = forward ? instance.forward.chunk : instance.chunk;
      slice.start_ps = trace.StartOf(entity, ref);
      slice.end_ps = trace.EndOf(entity, ref, index.size);
      slices.push_back(slice);
    }
  }
}

// Slices by start; of those that start at once, those of the first stream first, as they were.
// `streams`: where each begins, in the order of which its own are.
std::vector<Slice> Merged(const std::vector<Slice>& slices, std::vector<size_t> streams) {
  struct Next {
    int64_t start = 0;
    size_t stream = 0, at = 0;
    bool operator>(const Next& other) const {
      return std::tie(start, stream) > std::tie(other.start, other.stream);
    }
  };
  std::vector<Next> next;
  streams.push_back(slices.size());
  for (size_t s = 0; s + 1 < streams.size(); ++s) {
    if (streams[s] < streams[s + 1]) next.push_back({slices[streams[s]].start_ps, s, streams[s]});
  }
  const std::greater<Next> later;
  std::make_heap(next.begin(), next.end(), later);
  std::vector<Slice> merged;
  merged.reserve(slices.size());
  while (!next.empty()) {
    std::pop_heap(next.begin(), next.end(), later);
    Next& first = next.back();
    const size_t end = streams[first.stream + 1];
    // As long as no other begins before it.
    do {
      merged.push_back(slices[first.at++]);
      if (first.at == end) break;
      first.start = slices[first.at].start_ps;
    } while (next.size() == 1 || next.front() > first);
    if (first.at == end) {
      next.pop_back();
    } else {
      std::push_heap(next.begin(), next.end(), later);
    }
  }
  return merged;
}

}  // namespace

SummaryRange WholeRange(const SimInput& in) {
  return {0, static_cast<int32_t>(in.graph.programs.size()), 0,
          static_cast<int32_t>(in.sim.entities.size())};
}

std::vector<Slice> SlicesOf(const SimInput& in, const SimTrace& trace, const SummaryRange& range,
                            bool by_start) {
  std::vector<Slice> slices;
  int64_t tasks = 0;
  for (int32_t e = range.entity_begin; e < range.entity_end; ++e) {
    tasks += in.index.program(in.ProgramOf(e)).tasks;
  }
  slices.reserve(tasks);
  std::vector<size_t> streams;  // where each begins
  for (int32_t e = range.entity_begin; e < range.entity_end; ++e) {
    const int32_t program = in.ProgramOf(e);
    for (int s = 0; s < kNumStreams; ++s) {
      streams.push_back(slices.size());
      const ProgramIndex& index = in.index.program(program);
      for (int32_t l = index.stream_begin[s]; l < index.stream_begin[s + 1]; ++l) {
        AppendSlices(in, trace, e, s, index.instances_of_streams[l], slices);
      }
    }
  }
  for (Slice& slice : slices) slice.device_class -= range.entity_begin;
  return by_start ? Merged(slices, std::move(streams)) : slices;
}

SimResult Summarise(const SimInput& in, const SimTrace& trace,
                    const std::vector<ClassMemory>& memory, const SummaryRange& range) {
  SimResult result;
  result.makespan_ps = trace.makespan_ps;
  const ExecutionGraph& graph = in.graph;
  Breakdowns breakdowns(in, trace);
  std::vector<int> classes_of(graph.programs.size());
  for (int32_t e = range.entity_begin; e < range.entity_end; ++e) {
    ++classes_of[in.sim.entities[e].program];
  }
  for (int32_t e = range.entity_begin; e < range.entity_end; ++e) {
    const SimGraph::Entity& entity = in.sim.entities[e];
    DeviceClassResult row;
    row.name = graph.programs[entity.program].name;
    if (classes_of[entity.program] > 1) {
      absl::StrAppend(&row.name, " (as device ", entity.representative, ")");
    }
    row.program = entity.program - range.program_begin;
    row.devices = entity.devices;
    row.representative = entity.representative;
    row.breakdown = breakdowns.Of(e);
    row.memory = memory[row.program];
    row.finish_ps = trace.FinishOf(e);
    result.classes.push_back(std::move(row));
    result.counters.tasks += in.index.program(entity.program).tasks * entity.devices;
  }
  result.counters.device_classes = range.entity_end - range.entity_begin;
  result.counters.blocks = static_cast<int64_t>(graph.blocks.size());
  for (int32_t p = range.program_begin; p < range.program_end; ++p) {
    result.counters.instances += static_cast<int64_t>(graph.programs[p].instances.size());
  }
  for (int32_t e = range.entity_begin; e < range.entity_end; ++e) {
    result.counters.materialised_tasks += trace.stepped_tasks[e];
  }
  AttributeCriticalPath(in, trace, result, range.entity_begin, range.entity_end);
  return result;
}

}  // namespace plancast
