// The allocator of the C library with a count of what is held. Replacing malloc()
// and its kin in the executable replaces them for the C++ and the C of all libraries.

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "tests/fuzz/native/guard.h"

#if defined(__has_feature)  // clang
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PLANCAST_SANITIZER_ALLOCATES
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLANCAST_SANITIZER_ALLOCATES
#endif

#ifdef PLANCAST_SANITIZER_ALLOCATES

namespace plancast {
void CountMemory(int64_t) {}
bool MemoryWasShort() { return false; }
int64_t PeakMemory() { return 0; }
void StopCountingMemory() {}
}  // namespace plancast

#else

#include <malloc.h>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* memory);
}

namespace plancast {
namespace {

std::atomic<int64_t> held{0}, peak{0}, most{INT64_MAX};
std::atomic<bool> was_short{false};

bool Allowed(size_t size) {
  const int64_t limit = most.load(std::memory_order_relaxed);
  if (limit == INT64_MAX) return true;
  if (size <= static_cast<size_t>(limit) &&
      held.load(std::memory_order_relaxed) + static_cast<int64_t>(size) <= limit) {
    return true;
  }
  was_short = true;
  errno = ENOMEM;
  return false;
}

void* Counted(void* memory) {
  if (memory == nullptr) return memory;
  const auto size = static_cast<int64_t>(malloc_usable_size(memory));
  const int64_t now = held.fetch_add(size, std::memory_order_relaxed) + size;
  if (now > peak.load(std::memory_order_relaxed)) peak.store(now, std::memory_order_relaxed);
  return memory;
}

void Uncount(void* memory) {
  if (memory == nullptr) return;
  held.fetch_sub(static_cast<int64_t>(malloc_usable_size(memory)), std::memory_order_relaxed);
}

}  // namespace

void CountMemory(int64_t most_bytes) {
  held = peak = 0;
  was_short = false;
  most = most_bytes;
}
bool MemoryWasShort() { return was_short; }
int64_t PeakMemory() { return peak; }
void StopCountingMemory() { most = INT64_MAX; }

}  // namespace plancast

extern "C" {

void* malloc(size_t size) {
  return plancast::Allowed(size) ? plancast::Counted(__libc_malloc(size)) : nullptr;
}

void* calloc(size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes) || !plancast::Allowed(bytes)) return nullptr;
  return plancast::Counted(__libc_calloc(count, size));
}

void* realloc(void* memory, size_t size) {
  if (!plancast::Allowed(size)) return nullptr;
  plancast::Uncount(memory);
  void* const moved = __libc_realloc(memory, size);
  if (moved == nullptr && size > 0) plancast::Counted(memory);  // still there
  return plancast::Counted(moved);
}

void* memalign(size_t alignment, size_t size) {
  return plancast::Allowed(size) ? plancast::Counted(__libc_memalign(alignment, size)) : nullptr;
}

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}

void free(void* memory) {
  plancast::Uncount(memory);
  __libc_free(memory);
}

}  // extern "C"

#endif
