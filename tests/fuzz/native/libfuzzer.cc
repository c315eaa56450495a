// Entry points for libFuzzer, which comes with clang:
//
//   CC=clang bazel build -c opt --copt=-fsanitize=fuzzer-no-link \
//     --linkopt=-fsanitize=fuzzer //tests/fuzz/native:libfuzzer
//   PLANCAST_FUZZ_TARGET=machine_json bazel-bin/tests/fuzz/native/libfuzzer CORPUS

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "absl/strings/string_view.h"
#include "tests/fuzz/native/session.h"
#include "tests/fuzz/native/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const plancast::FuzzTarget* const target = [] {
    const char* name = std::getenv("PLANCAST_FUZZ_TARGET");
    const auto* found = plancast::FindFuzzTarget(name == nullptr ? "" : name);
    if (found == nullptr) {
      std::cerr << "PLANCAST_FUZZ_TARGET must name a target (docs/fuzzing.md)\n";
      std::abort();
    }
    return found;
  }();
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::Status verdict = plancast::CheckAnswer(target->read(bytes), bytes);
  if (!verdict.ok()) {
    std::cerr << verdict << "\n";
    std::abort();
  }
  return 0;
}
