#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace plancast::check_internal {

FatalMessage::FatalMessage(const char* file, int line, const char* condition) {
  stream_ << file << ":" << line << ": this is a bug in Plancast: expected " << condition << " ";
}

FatalMessage::~FatalMessage() {
  std::fprintf(stderr, "%s\n", stream_.str().c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace plancast::check_internal
