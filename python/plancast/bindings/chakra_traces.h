#ifndef PLANCAST_PYTHON_PLANCAST_BINDINGS_CHAKRA_TRACES_H_
#define PLANCAST_PYTHON_PLANCAST_BINDINGS_CHAKRA_TRACES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "interop/chakra/chakra_trace.h"

namespace plancast {

// Chakra traces of ranks 0, 1, ...; equal files are one trace.
struct PyTraces {
  std::vector<std::shared_ptr<const ChakraTrace>> of_rank;

  std::vector<const ChakraTrace*> Pointers() const;
};

// From (name in errors, bytes) of each rank.
absl::StatusOr<PyTraces> ReadTraces(const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace plancast

#endif  // PLANCAST_PYTHON_PLANCAST_BINDINGS_CHAKRA_TRACES_H_
