// Entry points for libFuzzer, which comes with clang; a binary for each group of targets
// (docs/fuzzing.md says how to build and run them):
//
//   PLANCAST_FUZZ_TARGET=nccl_trace bazel-bin/tests/fuzz/native/libfuzzer_traces CORPUS

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/fuzz/native/mutate.h"
#include "tests/fuzz/native/session.h"
#include "tests/fuzz/native/target.h"
#include "tests/fuzz/native/targets/groups.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace plancast {
namespace {

constexpr double kMostSeconds = 5;  // of CPU: 1, sanitized

const FuzzTarget& Target() {
  static const auto* const target = [] {
    const char* name = std::getenv("PLANCAST_FUZZ_TARGET");
    for (const FuzzTarget& one : PLANCAST_FUZZ_GROUP()) {
      if (name != nullptr && one.name == name) return new FuzzTarget(one);
    }
    std::cerr << "PLANCAST_FUZZ_TARGET must name a target of this binary (docs/fuzzing.md)\n";
    std::abort();
  }();
  return *target;
}

}  // namespace
}  // namespace plancast

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::clock_t begin = std::clock();
  const absl::Status verdict = plancast::CheckAnswer(plancast::Target().read(bytes), bytes);
  const double took_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  if (!verdict.ok() || took_s > plancast::kMostSeconds) {
    std::cerr << verdict << ", " << took_s << " s of CPU\n";
    std::abort();
  }
  return 0;
}

// Half of the changes are those of our own cases, to the structure of a text.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::vector<std::string> seeds = {{reinterpret_cast<const char*>(data), size}};
  const std::string changed = plancast::FuzzInput(plancast::Target(), seeds, 1 + seed);
  const size_t length = std::min(changed.size(), most);
  std::memcpy(data, changed.data(), length);
  return length;
}
