// Traces in the Chrome format: NCCL's own, and any.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/picoseconds.h"
#include "interop/nccl/trace_events.h"
#include "interop/nccl/trace_summary.h"
#include "interop/timeline/timeline_json.h"
#include "python/plancast/bindings/types.h"
#include "python/plancast/bindings/unlocked.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

// None for what the file does not say.
std::optional<int64_t> Said(int64_t value) {
  return value < 0 ? std::nullopt : std::optional<int64_t>(value);
}

std::string DirectionName(NcclDirection direction) {
  return direction == NcclDirection::kSend      ? "send"
         : direction == NcclDirection::kReceive ? "receive"
                                                : "";
}

// Of the events from `begin` to before `end`; a piece at a time, since nobody else runs Python
// while a list of Python's is made.
py::list Events(const NcclTrace& trace, size_t begin, size_t end) {
  py::list out;
  for (size_t i = begin; i < std::min(end, trace.events.size()); ++i) {
    const TimelineSpan& span = trace.timeline.spans[i];
    const NcclEvent& e = trace.events[i];
    const TimelineTrack& track = trace.timeline.tracks[span.track];
    const std::optional<double> duration = span.missing == TimelineSpan::Missing::kNone
                                               ? std::optional<double>(ToSeconds(span.duration_ps))
                                               : std::nullopt;
    out.append(py::make_tuple(std::string(NcclEventKindName(e.kind)), span.name, span.category,
                              track.process_name, track.thread_name, ToSeconds(span.start_ps),
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
        ToSeconds(o.total_ps), ToSeconds(o.least_ps), ToSeconds(o.median_ps), ToSeconds(o.most_ps),
        o.kernel_ps < 0 ? std::nullopt : std::optional<double>(ToSeconds(o.kernel_ps))));
  }
  return out;
}

py::list Channels(const NcclTraceSummary& summary) {
  py::list out;
  for (const NcclChannelSummary& c : summary.channels) {
    out.append(py::make_tuple(Said(c.rank), Said(c.channel), DirectionName(c.direction),
                              Said(c.peer), c.operations, c.steps, Said(c.bytes),
                              ToSeconds(c.step_ps), ToSeconds(c.busy_ps)));
  }
  return out;
}

py::list Waits(const NcclTraceSummary& summary) {
  py::list out;
  for (const NcclWaitSummary& w : summary.waits) {
    out.append(py::make_tuple(DirectionName(w.direction), std::string(NcclWaitName(w.wait)),
                              w.count, ToSeconds(w.total_ps), w.share));
  }
  return out;
}

std::vector<std::pair<int64_t, std::string>> Shown(const TraceProblems& problems) {
  std::vector<std::pair<int64_t, std::string>> out;
  for (const TraceProblem& p : problems.shown) out.emplace_back(p.line, p.reason);
  return out;
}

// The bytes live as long as their Python object.
absl::string_view View(const py::bytes& bytes) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw py::error_already_set();
  return {data, static_cast<size_t>(size)};
}

NcclTrace ReadTrace(const py::bytes& bytes, const std::string& what) {
  return Unlocked([data = View(bytes), &what] { return ReadNcclTrace(data, what); });
}

TimelineFile ReadChromeTrace(const py::bytes& bytes, const std::string& what) {
  return Unlocked([data = View(bytes), &what] { return ReadTimeline(data, what); });
}

// Name, category, track, start and duration (none of a moment), parent, line, args; a piece at
// a time.
py::list Spans(const TimelineFile& file, size_t begin, size_t end) {
  py::list out;
  for (size_t i = begin; i < std::min(end, file.timeline.spans.size()); ++i) {
    const TimelineSpan& span = file.timeline.spans[i];
    const std::optional<double> duration = span.missing == TimelineSpan::Missing::kNone
                                               ? std::optional<double>(ToSeconds(span.duration_ps))
                                               : std::nullopt;
    py::dict args;
    for (const TraceArg& arg : span.args) args[py::str(arg.key)] = arg.value;
    out.append(py::make_tuple(span.name, span.category, span.track, ToSeconds(span.start_ps),
                              duration, Said(span.parent), span.line, std::move(args)));
  }
  return out;
}

// Process, thread and their names.
py::list Tracks(const TimelineFile& file) {
  py::list out;
  for (const TimelineTrack& track : file.timeline.tracks) {
    out.append(py::make_tuple(track.process, track.thread, track.process_name, track.thread_name));
  }
  return out;
}

// Name, the spans at both ends and the moments.
py::list FlowsOf(const TimelineFile& file) {
  py::list out;
  for (const TimelineFlow& flow : file.timeline.flows) {
    out.append(py::make_tuple(flow.name, flow.from, flow.to, ToSeconds(flow.from_ps),
                              ToSeconds(flow.to_ps)));
  }
  return out;
}

// Name, process, moment and values by name.
py::list CountersOf(const TimelineFile& file) {
  py::list out;
  for (const TimelineCounter& counter : file.timeline.counters) {
    py::dict values;
    for (const auto& [name, value] : counter.values) values[py::str(name)] = value;
    out.append(
        py::make_tuple(counter.name, counter.process, ToSeconds(counter.ps), std::move(values)));
  }
  return out;
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
      .def("events", &Events, py::arg("begin"), py::arg("end"))
      .def("summary",
           [](const NcclTrace& trace) {
             const NcclTraceSummary summary = [&] {
               py::gil_scoped_release release;
               return Summarise(trace);
             }();
             return py::make_tuple(Operations(summary), Channels(summary), Waits(summary),
                                   ToSeconds(summary.last_ps - summary.first_ps));
           })
      .def_property_readonly("problem_count",
                             [](const NcclTrace& trace) { return trace.problems.count; })
      .def("problems", [](const NcclTrace& trace) { return Shown(trace.problems); })
      .def("mended", [](const NcclTrace& trace) { return trace.problems.mended; })
      .def("perfetto", [](const NcclTrace& trace) {
        py::gil_scoped_release release;
        return TimelineJson(trace.timeline);
      });
  py::class_<TimelineFile>(m, "ChromeTrace")
      .def_static("read", &ReadChromeTrace, py::arg("data"), py::arg("what"))
      .def("__len__", [](const TimelineFile& file) { return file.timeline.spans.size(); })
      .def("spans", &Spans, py::arg("begin"), py::arg("end"))
      .def("tracks", &Tracks)
      .def("flows", &FlowsOf)
      .def("counters", &CountersOf)
      .def_property_readonly("origin_s",
                             [](const TimelineFile& file) {
                               return static_cast<double>(file.timeline.origin_us) / 1e6;
                             })
      .def_property_readonly("problem_count",
                             [](const TimelineFile& file) { return file.problems.count; })
      .def("problems", [](const TimelineFile& file) { return Shown(file.problems); })
      .def("mended", [](const TimelineFile& file) { return file.problems.mended; })
      .def("perfetto", [](const TimelineFile& file) {
        py::gil_scoped_release release;
        return TimelineJson(file.timeline);
      });
}

}  // namespace plancast
