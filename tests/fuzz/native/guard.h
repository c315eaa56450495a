#ifndef PLANCAST_TESTS_FUZZ_NATIVE_GUARD_H_
#define PLANCAST_TESTS_FUZZ_NATIVE_GUARD_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace plancast {

// Memory that a case has asked for and holds, by an allocator that counts (guard_memory.cc).
// Under a sanitizer, which has its own allocator, nothing is counted.
void CountMemory(int64_t most_bytes);  // from now on; allocations beyond it fail
bool MemoryWasShort();                 // since CountMemory()
int64_t PeakMemory();                  // bytes, since CountMemory()
void StopCountingMemory();

// While a case is watched, a signal that ends the process (a crash, `cpu_seconds` over)
// first writes the input to `path` and says what happened on stderr.
void InstallGuards();
void Watch(absl::string_view input, const std::string& path, int cpu_seconds);
void Unwatch();

}  // namespace plancast

#endif  // PLANCAST_TESTS_FUZZ_NATIVE_GUARD_H_
