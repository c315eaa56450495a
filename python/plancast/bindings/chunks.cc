// Flows of chunk programs: the messages of a collective, one by one.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/suggest.h"
#include "collectives/programs/flows.h"
#include "collectives/programs/makers.h"
#include "collectives/programs/program_maker.h"
#include "interop/msccl/msccl_xml.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"
#include "python/plancast/bindings/unlocked.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

// id, src, dst, bytes, channel, step, deps.
using PyFlow =
    std::tuple<int64_t, int32_t, int32_t, int64_t, int32_t, int32_t, std::vector<int64_t>>;

std::vector<PyFlow> Flows(const ChunkProgram& program, int64_t bytes) {
  absl::StatusOr<std::vector<Flow>> flows;
  {
    py::gil_scoped_release release;
    flows = FlowsOf(program, bytes);
  }
  std::vector<PyFlow> result;
  for (Flow& flow : ValueOrThrow(std::move(flows))) {
    result.emplace_back(flow.id, flow.src, flow.dst, flow.bytes, flow.channel, flow.step,
                        std::move(flow.deps));
  }
  return result;
}

ProgramRequest Along(const std::string& op, const std::string& algorithm, size_t ranks,
                     size_t channels, int32_t root) {
  ProgramRequest request;
  std::vector<absl::string_view> names;
  bool known = false;
  for (int i = 0; i < static_cast<int>(ProgramKind::kCustom); ++i) {
    const auto kind = static_cast<ProgramKind>(i);
    names.push_back(kProgramKindNames[kind]);
    if (names.back() != op) continue;
    request.kind = kind;
    known = true;
  }
  if (!known) {
    ThrowStatus(
        absl::InvalidArgumentError(absl::StrCat("no collective `", op, "`.", Offer(op, names))));
  }
  request.algorithm = algorithm;
  request.levels = {static_cast<int32_t>(ranks)};
  request.channels = static_cast<int32_t>(channels);
  request.root = root;
  return request;
}

// rings[channel]: ranks in order.
std::vector<PyFlow> RingFlows(const std::string& op, const std::vector<std::vector<int32_t>>& rings,
                              int64_t bytes, int32_t root) {
  const size_t ranks = rings.empty() ? 0 : rings[0].size();
  for (const std::vector<int32_t>& ring : rings) {
    std::vector<int32_t> sorted = ring;
    std::sort(sorted.begin(), sorted.end());
    for (size_t r = 0; r < sorted.size(); ++r) {
      if (sorted[r] == static_cast<int32_t>(r) && ring.size() == ranks) continue;
      ThrowStatus(absl::InvalidArgumentError("a ring has to name every rank once."));
    }
  }
  if (ranks == 0 || root < 0 || root >= static_cast<int32_t>(ranks)) {
    ThrowStatus(absl::InvalidArgumentError(
        absl::StrCat("the root is rank ", root, " of ", ranks, " ranks on rings.")));
  }
  const ProgramMaker maker =
      ValueOrThrow(MakeRingAlong(Along(op, "ring", ranks, rings.size(), root), rings));
  return Flows(Unlocked([&] { return maker.MakeAll(); }), bytes);
}

// trees[rank][channel]: (up, down).
std::vector<PyFlow> TreeFlows(
    const std::string& op,
    const std::vector<std::vector<std::pair<int32_t, std::vector<int32_t>>>>& trees,
    int64_t bytes) {
  std::vector<std::vector<TreePlace>> places;
  for (const auto& rank : trees) {
    std::vector<TreePlace>& of_rank = places.emplace_back();
    for (const auto& [up, down] : rank) of_rank.push_back({up, down});
    if (of_rank.size() == places[0].size()) continue;
    ThrowStatus(
        absl::InvalidArgumentError("every rank has to stand in the tree of every channel."));
  }
  const size_t channels = places.empty() ? 0 : places[0].size();
  const ProgramMaker maker =
      ValueOrThrow(MakeTreeAlong(Along(op, "tree", trees.size(), channels, 0), std::move(places)));
  return Flows(Unlocked([&] { return maker.MakeAll(); }), bytes);
}

}  // namespace

void BindChunks(py::module_& m) {
  m.def(
      "flows",
      [](const MscclAlgorithm& algorithm, int64_t bytes) {
        return Flows(algorithm.program, bytes);
      },
      py::arg("algorithm"), py::kw_only(), py::arg("bytes"));
  m.def("ring_flows", &RingFlows, py::arg("op"), py::kw_only(), py::arg("rings"), py::arg("bytes"),
        py::arg("root"));
  m.def("tree_flows", &TreeFlows, py::arg("op"), py::kw_only(), py::arg("trees"), py::arg("bytes"));
}

}  // namespace plancast
