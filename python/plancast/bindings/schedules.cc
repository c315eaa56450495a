#include "python/plancast/bindings/schedules.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/schedule/find_schedule.h"
#include "compiler/schedule/schedule_run.h"
#include "python/plancast/bindings/status.h"
#include "strategy/schedule/schedule_table.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {
namespace {

namespace py = pybind11;

// (table, makespan, most that each stage keeps, what it was made from, the best named one).
using PyFound = std::tuple<std::string, int64_t, std::vector<int64_t>, std::string, std::string>;

// Lists of times have an entry for each virtual stage of one copy, `transfer` and `memory` for each
// stage; without `weights` nothing is put off.
PyFound FindScheduleOf(int64_t stages, int64_t chunks, const std::string& placement,
                       int64_t micro_batches, const std::vector<int64_t>& forward,
                       const std::vector<int64_t>& backward, const std::vector<int64_t>& weights,
                       const std::vector<int64_t>& transfer, const std::vector<int64_t>& memory) {
  PipelineTimes times = PipelineTimes::Equal(
      ValueOrThrow(StagePlacement::Parse(placement, stages, chunks)), PassTime());
  for (size_t v = 0; v < times.passes.size(); ++v) {
    PassTime& pass = times.passes[v];
    const int64_t part = times.placement.PartOf(static_cast<int64_t>(v));
    pass.forward = forward[part];
    pass.backward = backward[part];
    pass.weights = weights.empty() ? 0 : weights[part];
  }
  times.transfer = transfer;
  SearchOptions options;
  options.memory = memory;
  options.may_split = !weights.empty();
  FoundSchedule found = ValueOrThrow([&] {
    py::gil_scoped_release release;
    return FindSchedule(micro_batches, times, options);
  }());
  return {PrintScheduleTable(found.table), found.run.makespan, std::move(found.run.most_kept),
          std::move(found.from), std::move(found.best_named)};
}

}  // namespace

void BindSchedules(py::module_& m) {
  m.def("find_schedule", &FindScheduleOf, py::kw_only(), py::arg("stages"), py::arg("chunks"),
        py::arg("placement"), py::arg("micro_batches"), py::arg("forward"), py::arg("backward"),
        py::arg("weights"), py::arg("transfer"), py::arg("memory"));
}

}  // namespace plancast
