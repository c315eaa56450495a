// Collective algorithms: made, read and written as MSCCL's XML, run, synthesised.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/picoseconds.h"
#include "base/suggest.h"
#include "cluster/mixed_machine.h"
#include "collectives/programs/check/check.h"
#include "collectives/programs/program_maker.h"
#include "collectives/synthesis/synthesise.h"
#include "interop/msccl/msccl_check.h"
#include "interop/msccl/msccl_run.h"
#include "interop/msccl/msccl_xml.h"
#include "interop/msccl/nvlink_graph.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"
#include "python/plancast/bindings/unlocked.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

ProgramKind KindOf(const std::string& op) {
  if (const auto kind = kProgramKindNames.Find(op)) return *kind;
  ThrowStatus(absl::InvalidArgumentError(
      absl::StrCat("no collective `", op, "`.", Offer(op, kProgramKindNames))));
}

MscclAlgorithm Make(const std::string& op, const std::string& algorithm,
                    const std::vector<int32_t>& levels, int32_t channels,
                    const std::string& protocol, int32_t root) {
  ProgramRequest request;
  request.kind = KindOf(op);
  request.algorithm = algorithm;
  request.levels = levels;
  request.channels = channels;
  request.protocol = protocol;
  request.root = root;
  MscclAlgorithm out;
  out.program = Unlocked([&] { return MakeProgram(request); });
  return out;
}

// Steps by their MSCCL name, chunks sent by each GPU.
std::map<std::string, int64_t> CountSteps(const MscclAlgorithm& algorithm) {
  std::map<std::string, int64_t> out;
  for (const RankProgram& rank : algorithm.program.ranks) {
    for (const ThreadBlock& block : rank.blocks) {
      for (const ChunkStep& step : block.steps) ++out[MscclWord(step.op)];
    }
  }
  return out;
}

std::vector<int64_t> CountSends(const MscclAlgorithm& algorithm) {
  std::vector<int64_t> out;
  for (const RankProgram& rank : algorithm.program.ranks) {
    out.push_back(0);
    for (const ThreadBlock& block : rank.blocks) {
      for (const ChunkStep& step : block.steps)
        out.back() += Sends(step.op) ? step.source.count : 0;
    }
  }
  return out;
}

py::dict DictOf(const MscclRun& run, bool timeline) {
  py::dict out;
  out["time"] = ToSeconds(run.finish_ps);
  std::vector<double> ranks;
  for (const int64_t ps : run.rank_finish_ps) ranks.push_back(ToSeconds(ps));
  out["rank_times"] = ranks;
  out["algorithm_bandwidth"] = run.algorithm_bytes_per_s;
  out["bus_bandwidth"] = run.bus_bytes_per_s;
  out["busiest_link"] = run.busiest_link.name;
  out["busiest_link_bytes"] = run.busiest_link.bytes;
  out["busiest_link_share"] = run.busiest_link.busy;
  out["busiest_block"] = run.busiest_block.name;
  out["busiest_block_share"] = run.busiest_block.busy;
  if (timeline) out["_trace"] = MessageTrace(run);
  return out;
}

// Seconds of a message beside its transfer, in picoseconds.
int64_t AlphaPs(double alpha) {
  if (!(alpha >= 0 && alpha <= 1)) {
    ThrowStatus(absl::InvalidArgumentError(
        absl::StrCat("alpha is ", alpha, " s; from 0 to 1 is allowed.")));
  }
  return RoundToPicoseconds(alpha);
}

py::dict RunOnMachine(const MscclAlgorithm& self, const PyMachine& machine, int64_t bytes,
                      std::optional<double> alpha, bool timeline) {
  ThrowIfError(CheckNotMixed(machine.machine, "A run of an algorithm"));
  ChunkParameters parameters;
  if (alpha) parameters.node_hop_ps = parameters.network_hop_ps = AlphaPs(*alpha);
  return DictOf(Unlocked([&]() -> absl::StatusOr<MscclRun> {
                  if (!alpha) {
                    auto known = MscclParameters(machine.machine, self.program.protocol);
                    if (!known.ok()) return known.status();
                    parameters = *known;
                  }
                  return RunProgram(self.program, ChunkNetwork::OfMachine(machine.machine), bytes,
                                    parameters, timeline);
                }),
                timeline);
}

py::dict RunOnGraph(const MscclAlgorithm& self, const LinkGraph& graph, int64_t bytes,
                    double link_bandwidth, double alpha, bool timeline) {
  if (!(link_bandwidth >= 1 && link_bandwidth <= 1e15)) {
    ThrowStatus(absl::InvalidArgumentError(
        absl::StrCat("a link of ", link_bandwidth, " bytes/s; from 1 to 1e15 is allowed.")));
  }
  const int64_t alpha_ps = AlphaPs(alpha);
  return DictOf(Unlocked([&]() -> absl::StatusOr<MscclRun> {
                  auto network = NetworkOfGraph(graph, std::llround(link_bandwidth), alpha_ps);
                  if (!network.ok()) return network.status();
                  return RunProgram(self.program, *network, bytes, {}, timeline);
                }),
                timeline);
}

const char* AnswerName(SearchResult::Answer answer) {
  return answer == SearchResult::Answer::kFound  ? "found"
         : answer == SearchResult::Answer::kNone ? "none"
                                                 : "gave up";
}

py::dict DictOf(const Synthesis& synthesis, int32_t steps, int32_t rounds, int32_t chunks) {
  py::dict out;
  out["steps"] = steps;
  out["rounds"] = rounds;
  out["chunks"] = chunks;
  out["answer"] = AnswerName(synthesis.answer);
  out["proof"] = synthesis.proof;
  out["conflicts"] = synthesis.conflicts;
  out["rounds_of_steps"] = synthesis.rounds;
  if (synthesis.answer == SearchResult::Answer::kFound) {
    MscclAlgorithm algorithm;
    algorithm.program = synthesis.program;
    out["algorithm"] = py::cast(std::move(algorithm));
  } else {
    out["algorithm"] = py::none();
  }
  return out;
}

py::dict Search(const LinkGraph& graph, const std::string& op, int32_t steps, int32_t rounds,
                int32_t chunks, int32_t root, int64_t conflicts) {
  const SynthesisRequest request{KindOf(op), steps, rounds, chunks, root, conflicts};
  return DictOf(Unlocked([&] { return Synthesise(graph, request); }), steps, rounds, chunks);
}

py::dict Front(const LinkGraph& graph, const std::string& op, int32_t root, int32_t extra_rounds,
               int32_t most_steps, int64_t conflicts) {
  const ParetoRequest request{KindOf(op), root, extra_rounds, most_steps, conflicts};
  const ParetoFront front = Unlocked([&] { return FindParetoFront(graph, request); });
  const auto list = [](const std::vector<ParetoFront::Point>& points) {
    py::list out;
    for (const auto& p : points) out.append(DictOf(p.synthesis, p.steps, p.rounds, p.chunks));
    return out;
  };
  py::dict out;
  out["least_steps"] = front.bounds.steps;
  const Ratio bound = front.bounds.rounds.rounds_per_chunk;
  out["least_rounds_per_chunk"] = std::make_pair(bound.numerator, bound.denominator);
  out["reason"] = front.bounds.rounds.reason;
  out["points"] = list(front.points);
  out["others"] = list(front.others);
  out["complete"] = front.complete;
  return out;
}

LinkGraph MakeGraph(int32_t nodes, const std::vector<std::tuple<int32_t, int32_t, int32_t>>& ends) {
  std::vector<GraphLink> links;
  for (const auto& [from, to, width] : ends) links.push_back({from, to, width});
  return ValueOrThrow(LinkGraph::Create(nodes, std::move(links)));
}

void BindGraph(py::module_& m) {
  py::class_<LinkGraph>(m, "LinkGraph")
      .def_static("named",
                  [](const std::string& name) { return ValueOrThrow(LinkGraph::Named(name)); })
      .def_static(
          "from_nccl",
          [](const std::string& text, const std::string& what) {
            return Unlocked([&] { return ReadNvlinkGraph(text, what); });
          },
          py::arg("text"), py::arg("what"))
      .def_static("create", &MakeGraph, py::arg("nodes"), py::arg("links"))
      .def_property_readonly("nodes", &LinkGraph::nodes)
      .def_property_readonly("links", [](const LinkGraph& self) {
        std::vector<std::tuple<int32_t, int32_t, int32_t>> out;
        for (const GraphLink& link : self.links()) out.emplace_back(link.from, link.to, link.width);
        return out;
      });
  m.def("synthesize", &Search, py::arg("graph"), py::arg("op"), py::kw_only(), py::arg("steps"),
        py::arg("rounds"), py::arg("chunks"), py::arg("root"), py::arg("conflicts"));
  m.def("pareto_front", &Front, py::arg("graph"), py::arg("op"), py::kw_only(), py::arg("root"),
        py::arg("extra_rounds"), py::arg("most_steps"), py::arg("conflicts"));
}

}  // namespace

void BindAlgorithms(py::module_& m) {
  BindGraph(m);
  py::class_<MscclAlgorithm>(m, "Algorithm")
      .def_static("make", &Make, py::arg("op"), py::arg("algorithm"), py::kw_only(),
                  py::arg("levels"), py::arg("channels"), py::arg("protocol"), py::arg("root"))
      .def_static(
          "from_msccl",
          [](const std::string& text, const std::string& what) {
            return Unlocked([&] { return ReadMscclAlgorithm(text, what); });
          },
          py::arg("text"), py::arg("what"))
      .def("to_msccl",
           [](const MscclAlgorithm& self) {
             return Unlocked([&] { return WriteMscclAlgorithm(self); });
           })
      .def(
          "check",
          [](const MscclAlgorithm& self, const std::string& what) {
            Unlocked([&]() -> absl::StatusOr<bool> {
              const absl::Status status = CheckMscclAlgorithm(self, what);
              if (!status.ok()) return status;
              return true;
            });
          },
          py::arg("what"))
      .def("run_on_machine", &RunOnMachine, py::arg("machine"), py::kw_only(), py::arg("bytes"),
           py::arg("alpha"), py::arg("timeline"))
      .def("run_on_graph", &RunOnGraph, py::arg("graph"), py::kw_only(), py::arg("bytes"),
           py::arg("link_bandwidth"), py::arg("alpha"), py::arg("timeline"))
      .def("count_steps", &CountSteps)
      .def("count_sends", &CountSends)
      .def_property_readonly("name", [](const MscclAlgorithm& self) { return self.program.name; })
      .def_property_readonly("op",
                             [](const MscclAlgorithm& self) {
                               return std::string(kProgramKindNames[self.program.kind]);
                             })
      .def_property_readonly("protocol",
                             [](const MscclAlgorithm& self) { return self.program.protocol; })
      .def_property_readonly("gpus",
                             [](const MscclAlgorithm& self) { return self.program.members(); })
      .def_property_readonly("channels",
                             [](const MscclAlgorithm& self) { return self.program.channels; })
      .def_property_readonly("chunks",
                             [](const MscclAlgorithm& self) { return self.program.chunks; })
      .def_property_readonly("in_place",
                             [](const MscclAlgorithm& self) { return self.program.in_place; })
      .def_readonly("min_bytes", &MscclAlgorithm::min_bytes)
      .def_readonly("max_bytes", &MscclAlgorithm::max_bytes)
      .def_readonly("warnings", &MscclAlgorithm::warnings);
}

}  // namespace plancast
