// NCCL's trace events.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "interop/nccl/trace_events.h"
#include "interop/nccl/trace_summary.h"
#include "interop/timeline/timeline_json.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

double Seconds(int64_t ps) { return static_cast<double>(ps) * 1e-12; }

// None for what the file does not say.
std::optional<int64_t> Said(int64_t value) {
  return value < 0 ? std::nullopt : std::optional<int64_t>(value);
}

std::string DirectionName(NcclDirection direction) {
  return direction == NcclDirection::kSend      ? "send"
         : direction == NcclDirection::kReceive ? "receive"
                                                : "";
}

py::list Events(const NcclTrace& trace) {
  py::list out;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TimelineSpan& span = trace.timeline.spans[i];
    const NcclEvent& e = trace.events[i];
    const TimelineTrack& track = trace.timeline.tracks[span.track];
    const std::optional<double> duration = span.missing == TimelineSpan::Missing::kNone
                                               ? std::optional<double>(Seconds(span.duration_ps))
                                               : std::nullopt;
    out.append(py::make_tuple(std::string(NcclEventKindName(e.kind)), span.name, span.category,
                              track.process_name, track.thread_name, Seconds(span.start_ps),
                              duration, Said(span.parent), Said(e.rank), Said(e.channel),
                              Said(e.peer), DirectionName(e.direction), Said(e.step),
                              std::string(NcclWaitName(e.wait)), e.algorithm, e.protocol,
                              Said(e.channels), Said(e.bytes), span.line));
  }
  return out;
}

py::list Operations(const NcclTraceSummary& summary) {
  py::list out;
  for (const NcclOperationSummary& o : summary.operations) {
    out.append(py::make_tuple(
        o.name, o.algorithm, o.protocol, o.datatype, Said(o.bytes), Said(o.channels), o.calls,
        Seconds(o.total_ps), Seconds(o.least_ps), Seconds(o.median_ps), Seconds(o.most_ps),
        o.kernel_ps < 0 ? std::nullopt : std::optional<double>(Seconds(o.kernel_ps))));
  }
  return out;
}

py::list Channels(const NcclTraceSummary& summary) {
  py::list out;
  for (const NcclChannelSummary& c : summary.channels) {
    out.append(py::make_tuple(Said(c.rank), Said(c.channel), DirectionName(c.direction),
                              Said(c.peer), c.operations, c.steps, Said(c.bytes),
                              Seconds(c.step_ps), Seconds(c.busy_ps)));
  }
  return out;
}

py::list Waits(const NcclTraceSummary& summary) {
  py::list out;
  for (const NcclWaitSummary& w : summary.waits) {
    out.append(py::make_tuple(DirectionName(w.direction), std::string(NcclWaitName(w.wait)),
                              w.count, Seconds(w.total_ps), w.share));
  }
  return out;
}

NcclTrace ReadTrace(const py::bytes& bytes, const std::string& what) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw py::error_already_set();
  absl::StatusOr<NcclTrace> trace = [&] {
    py::gil_scoped_release release;
    return ReadNcclTrace(absl::string_view(data, static_cast<size_t>(size)), what);
  }();
  return ValueOrThrow(std::move(trace));
}

}  // namespace

void BindTraces(py::module_& m) {
  py::class_<NcclTrace>(m, "NcclTrace")
      .def_static("read", &ReadTrace, py::arg("data"), py::arg("what"))
      .def_property_readonly("dialect",
                             [](const NcclTrace& trace) {
                               return trace.dialect == NcclTraceDialect::kProxyProfile
                                          ? "proxy profile"
                                          : "profiler plugin";
                             })
      .def("__len__", [](const NcclTrace& trace) { return trace.events.size(); })
      .def("events", &Events)
      .def("summary",
           [](const NcclTrace& trace) {
             const NcclTraceSummary summary = Summarise(trace);
             return py::make_tuple(Operations(summary), Channels(summary), Waits(summary),
                                   Seconds(summary.last_ps - summary.first_ps));
           })
      .def_property_readonly("problem_count",
                             [](const NcclTrace& trace) { return trace.problems.count; })
      .def("problems",
           [](const NcclTrace& trace) {
             std::vector<std::pair<int64_t, std::string>> out;
             for (const TraceProblem& p : trace.problems.shown) out.emplace_back(p.line, p.reason);
             return out;
           })
      .def("mended", [](const NcclTrace& trace) { return trace.problems.mended; })
      .def("perfetto", [](const NcclTrace& trace) { return TimelineJson(trace.timeline); });
}

}  // namespace plancast
