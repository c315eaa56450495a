#ifndef PLANCAST_TESTS_INTEROP_MSCCL_MSCCL_FILES_H_
#define PLANCAST_TESTS_INTEROP_MSCCL_MSCCL_FILES_H_

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

// The algorithms of ../shared/data/oracles/msccl, made by msccl-tools (and one by
// RCCL). Tests that need them skip without PLANCAST_SHARED_DATA.

namespace plancast {

inline const std::vector<std::string>& MscclFiles() {
  static const auto* const files = new std::vector<std::string>{"allgather_ring",
                                                                "allreduce_a100_allpairs",
                                                                "allreduce_a100_ring",
                                                                "alltoall_allpairs_8",
                                                                "alltoall_a100_two_step_2x4",
                                                                "alltoall_a100_two_step_2x8",
                                                                "ar_rdh_8",
                                                                "hierarchical_allreduce_4x2",
                                                                "rccl_alltoall-8n-0-9kb"};
  return *files;
}

inline bool HasMscclFiles() { return std::getenv("PLANCAST_SHARED_DATA") != nullptr; }

// The text of a file, empty where it is not there.
inline std::string MscclText(absl::string_view name) {
  const char* data = std::getenv("PLANCAST_SHARED_DATA");
  std::ifstream in(absl::StrCat(data == nullptr ? "" : data, "/oracles/msccl/", name, ".xml"));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_INTEROP_MSCCL_MSCCL_FILES_H_
