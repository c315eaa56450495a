#ifndef PLANCAST_TESTS_FUZZ_NATIVE_TARGET_H_
#define PLANCAST_TESTS_FUZZ_NATIVE_TARGET_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace plancast {

// A reader of what others wrote. Whatever the bytes, it answers OK or
// InvalidArgument, with a message that grows at most in proportion to the words that
// it quotes, soon, and without more memory than `most_bytes`.
struct FuzzTarget {
  std::string name;  // also the folder of its seeds, corpus/NAME
  absl::Status (*read)(absl::string_view bytes) = nullptr;
  // Words of the format, beside those that the seeds hold.
  std::vector<std::string> words = {};
  // What opens a level of nesting, repeated to make a file that is all depth.
  std::vector<std::string> openers = {};
  int64_t most_bytes = int64_t{256} << 20;
};

// In the order of their names; each group is a file under targets/.
const std::vector<FuzzTarget>& FuzzTargets();
// nullptr: there is none of that name.
const FuzzTarget* FindFuzzTarget(absl::string_view name);

}  // namespace plancast

#endif  // PLANCAST_TESTS_FUZZ_NATIVE_TARGET_H_
