#include <google/protobuf/stubs/logging.h>
#include <pybind11/pybind11.h>

#include "python/plancast/bindings/types.h"

// plancast._core: the thin binding below the Python API. Its types and
// signatures are written down in _core.pyi.
PYBIND11_MODULE(_core, m) {
  m.doc() = "The C++ core of plancast; use the package `plancast` instead.";
  // What protobuf complains of on stderr is in the errors, too.
  google::protobuf::SetLogHandler(nullptr);
  plancast::BindMachine(m);
  plancast::BindCollective(m);
  plancast::BindRules(m);
  plancast::BindModel(m);
  plancast::BindStrategy(m);
  plancast::BindForecast(m);
  plancast::BindRecords(m);
  plancast::BindPredict(m);
  plancast::BindJobs(m);
  plancast::BindKernels(m);
  plancast::BindAlgorithms(m);
  plancast::BindNccl(m);
  plancast::BindChunks(m);
  plancast::BindTraces(m);
  plancast::BindAstra(m);
  plancast::BindChakra(m);
}
