#ifndef PLANCAST_TESTS_FUZZ_NATIVE_SESSION_H_
#define PLANCAST_TESTS_FUZZ_NATIVE_SESSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/fuzz/native/target.h"

namespace plancast {

struct FuzzOptions {
  uint64_t first = 0;  // number of the first case
  uint64_t runs = 1000;
  int seconds = 1;         // of CPU time that a case may take
  std::string save = ".";  // folder for the input of a case that fails
};

struct FuzzCounts {
  uint64_t runs = 0, accepted = 0, refused = 0;
  double seconds = 0;          // of all cases
  double slowest_seconds = 0;  // of one case
  uint64_t slowest = 0;        // its number
  int64_t most_bytes = 0;      // that a case held at once
};

// Runs cases one by one. An error names the case, with its input saved; a crash, a
// hang and too much memory end the process, with the input saved.
absl::StatusOr<FuzzCounts> RunFuzz(const FuzzTarget& target, const std::vector<std::string>& seeds,
                                   const FuzzOptions& options);

// What a reader's answer to any bytes must be; else an Internal error that says what it is.
absl::Status CheckAnswer(const absl::Status& answer, absl::string_view bytes);

}  // namespace plancast

#endif  // PLANCAST_TESTS_FUZZ_NATIVE_SESSION_H_
