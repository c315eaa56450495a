#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/picoseconds.h"
#include "executor/memory/allocator_replay.h"
#include "executor/memory/reasons.h"
#include "executor/memory/timeline.h"
#include "python/plancast/bindings/types.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

std::string NameOf(int kind) {
  return std::string(kMemoryKindNames[static_cast<MemoryKind>(kind)]);
}

py::list Rows(const Forecast& forecast) {
  py::list out;
  for (const DeviceClassResult& entry : forecast.result.classes) {
    const ClassMemory& memory = entry.memory;
    py::dict fields;
    fields["device_class"] = entry.name;
    fields["ranks"] = entry.devices;
    for (int kind = 0; kind < kNumMemoryKinds; ++kind)
      fields[py::str(NameOf(kind))] = memory.bytes[kind];
    fields["allocated"] = memory.allocated;
    fields["rounding"] = memory.rounding;
    fields["fragmentation"] = memory.fragmentation;
    fields["reserved"] = memory.reserved;
    fields["nccl"] = memory.nccl;
    fields["context"] = memory.context;
    fields["device"] = memory.device;
    fields["host"] = memory.host;
    out.append(std::move(fields));
  }
  return out;
}

// Why device class `index` peaks: fields and (name, kind, bytes of one, copies,
// micro-batches) of each line.
py::dict Reasons(const Forecast& forecast, int index) {
  const DeviceClassResult& entry = forecast.result.classes.at(index);
  PeakReasons reasons;
  {
    py::gil_scoped_release release;
    reasons = ExplainPeak(*forecast.memory_graph, entry.program);
  }
  py::list tensors;
  for (const LiveTensor& tensor : reasons.tensors) {
    tensors.append(py::make_tuple(tensor.name, std::string(kMemoryKindNames[tensor.kind]),
                                  tensor.bytes_each, tensor.copies,
                                  py::tuple(py::cast(tensor.micro_batches))));
  }
  py::dict out;
  out["block"] = reasons.block;
  out["task"] = reasons.task;
  out["layer"] = reasons.layer;
  out["micro_batch"] = reasons.micro_batch;
  out["tensors"] = std::move(tensors);
  return out;
}

// Every block of device class `index` placed by the allocator, with what the device has
// for it or without a limit.
py::dict PlacedBlocks(const Forecast& forecast, int index, bool limited) {
  const DeviceClassResult& entry = forecast.result.classes.at(index);
  const ExecutionGraph& graph = *forecast.memory_graph;
  const MemoryOverhead& overhead = forecast.memory_overhead;
  const int64_t capacity_bytes =
      overhead.capacities.empty() ? overhead.capacity_bytes : entry.memory.capacity;
  const int64_t room = capacity_bytes - entry.memory.nccl - entry.memory.context;
  AllocatorReplay replay;
  {
    py::gil_scoped_release release;
    const SegmentRoom segments = {limited ? room : 0,
                                  entry.memory.allocated + entry.memory.rounding};
    replay = overhead.allocator.state_in_step
                 ? ReplayFirstSteps(graph, entry.program, overhead.allocator, segments)
                 : ReplayAllocator(graph, entry.program, overhead.allocator, segments);
  }
  py::dict out;
  // What the end of an iteration takes for itself is not replayed block by block.
  const int64_t live = entry.memory.allocated;
  out["reserved"] = replay.out_of_memory ? replay.reserved : std::max(replay.reserved, live);
  out["blocks"] = replay.out_of_memory ? replay.live : std::max(replay.live, live);
  out["retries"] = replay.retries;
  out["out_of_memory"] = replay.out_of_memory;
  out["block"] = "";
  out["tensor"] = "";
  out["layer"] = -1;
  out["micro_batch"] = -1;
  if (replay.place.instance >= 0) {
    const Instance& instance = graph.programs[entry.program].instances[replay.place.instance];
    const Block& block = graph.blocks[instance.block];
    out["block"] = block.name;
    out["tensor"] = block.tensors[block.memory[replay.place.events - 1].tensor];
    const bool forward = block.IsPairForward(block.memory[replay.place.events - 1].task);
    out["layer"] = LayerOf(block, instance, replay.place.layer, forward);
    out["micro_batch"] = instance.MicroBatchOf(forward);
  }
  return out;
}

// Columns of the points of device class `index`; `time_s` is empty without a
// timeline.
py::dict Timeline(const Forecast& forecast, int index, int64_t max_points, bool every_layer) {
  const DeviceClassResult& entry = forecast.result.classes.at(index);
  MemoryTimeline timeline;
  std::vector<int64_t> times;
  {
    py::gil_scoped_release release;
    timeline =
        MemoryOverIssueOrder(*forecast.memory_graph, entry.program, {every_layer, max_points});
    if (forecast.timeline_graph != nullptr) {
      times = TimesOf(timeline, *forecast.memory_graph, entry.program, forecast.result, index);
    }
  }
  std::vector<double> seconds;
  for (int64_t ps : times) seconds.push_back(ToSeconds(ps));
  std::vector<int64_t> issued;
  std::array<std::vector<int64_t>, kNumMemoryKinds> bytes;
  for (const MemoryPoint& point : timeline.points) {
    issued.push_back(point.issued);
    for (int kind = 0; kind < kNumMemoryKinds; ++kind) bytes[kind].push_back(point.bytes.of[kind]);
  }
  py::dict out;
  out["issued"] = std::move(issued);
  out["time_s"] = std::move(seconds);
  for (int kind = 0; kind < kNumMemoryKinds; ++kind)
    out[py::str(NameOf(kind))] = std::move(bytes[kind]);
  out["peak"] = timeline.peak;
  return out;
}

}  // namespace

void BindMemory(py::class_<Forecast, std::shared_ptr<Forecast>>& forecast) {
  forecast
      .def_property_readonly("explains_memory",
                             [](const Forecast& self) { return self.memory_graph != nullptr; })
      .def("memory", &Rows)
      .def("memory_reasons", &Reasons, py::arg("index"))
      .def("memory_placement", &PlacedBlocks, py::arg("index"), py::kw_only(), py::arg("limited"))
      .def("memory_timeline", &Timeline, py::arg("index"), py::kw_only(), py::arg("max_points"),
           py::arg("every_layer"));
}

}  // namespace plancast
