#ifndef PLANCAST_TESTS_FUZZ_NATIVE_CORPUS_H_
#define PLANCAST_TESTS_FUZZ_NATIVE_CORPUS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// The seeds of a target, the files of tests/fuzz/native/corpus/NAME in the order of
// their names. `folder`: of all seeds; empty: the one beside the binary. InvalidArgument:
// there are none.
absl::StatusOr<std::vector<std::string>> FuzzSeeds(absl::string_view target,
                                                   const std::string& folder = "");

}  // namespace plancast

#endif  // PLANCAST_TESTS_FUZZ_NATIVE_CORPUS_H_
