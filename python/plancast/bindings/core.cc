#include <google/protobuf/stubs/logging.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "base/suggest.h"
#include "python/plancast/bindings/schedules.h"
#include "python/plancast/bindings/types.h"

namespace {

std::vector<std::string> Nearest(const std::string& word, const std::vector<std::string>& known,
                                 size_t most) {
  const auto near = plancast::NearestFirst(word, known, most);
  return {near.begin(), near.end()};
}

}  // namespace

// plancast._core: the thin binding below the Python API. Its types and
// signatures are written down in _core.pyi.
PYBIND11_MODULE(_core, m) {
  m.doc() = "The C++ core of plancast; use the package `plancast` instead.";
  // What protobuf complains of on stderr is in the errors, too.
  google::protobuf::SetLogHandler(nullptr);
  m.def("nearest", &Nearest, pybind11::arg("word"), pybind11::arg("known"), pybind11::arg("most"));
  m.def(
      "offer",
      [](const std::string& word, const std::vector<std::string>& known) {
        return plancast::Offer(word, known);
      },
      pybind11::arg("word"), pybind11::arg("known"));
  plancast::BindMachine(m);
  plancast::BindCollective(m);
  plancast::BindRules(m);
  plancast::BindModel(m);
  plancast::BindModelGraph(m);
  plancast::BindStrategy(m);
  plancast::BindForecast(m);
  plancast::BindRecords(m);
  plancast::BindSchedules(m);
  plancast::BindPredict(m);
  plancast::BindSearch(m);
  plancast::BindExecutionGraph(m);
  plancast::BindJobs(m);
  plancast::BindCluster(m);
  plancast::BindGradients(m);
  plancast::BindKernels(m);
  plancast::BindAlgorithms(m);
  plancast::BindNccl(m);
  plancast::BindChunks(m);
  plancast::BindTraces(m);
  plancast::BindAstra(m);
  plancast::BindChakra(m);
}
