#ifndef PLANCAST_PYTHON_PLANCAST_BINDINGS_CHAKRA_TRACES_H_
#define PLANCAST_PYTHON_PLANCAST_BINDINGS_CHAKRA_TRACES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "interop/chakra/chakra_trace.h"
#include "interop/chakra/et_file.h"

namespace plancast {

// Chakra traces of ranks 0, 1, ...; equal files are one trace.
struct PyTraces {
  std::vector<std::shared_ptr<const ChakraTrace>> of_rank;

  std::vector<const ChakraTrace*> Pointers() const;
};

// Puts traces together, rank by rank, within the limits of a set of files.
class TraceSet {
 public:
  // `what` stands for the file of the next rank in errors.
  absl::Status Add(const std::string& what, std::string bytes);
  PyTraces Done() && { return std::move(traces_); }

 private:
  PyTraces traces_;
  EtAllowance left_;
  size_t nodes_ = 0;  // of all ranks, those of equal files too
  absl::flat_hash_map<std::string, std::shared_ptr<const ChakraTrace>> known_;
};

}  // namespace plancast

#endif  // PLANCAST_PYTHON_PLANCAST_BINDINGS_CHAKRA_TRACES_H_
