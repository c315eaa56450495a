#ifndef PLANCAST_BASE_CHECK_H_
#define PLANCAST_BASE_CHECK_H_

#include <sstream>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

// PLANCAST_CHECK* abort the program with the place and the values. They are for
// our own bugs only: whatever a user can cause is an absl::Status.
//
//   PLANCAST_CHECK(begin <= end) << "range of " << name;
//   PLANCAST_CHECK_EQ(a.size(), b.size());
//   PLANCAST_CHECK_OK(graph.Verify());
//
// PLANCAST_DCHECK* are compiled but never evaluated in optimised builds.

namespace plancast::check_internal {

// Collects a message and aborts when it goes out of scope.
class FatalMessage {
 public:
  FatalMessage(const char* file, int line, const char* condition);
  [[noreturn]] ~FatalMessage();
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Swallows the stream, so that both branches of a check have type void.
struct Voidify {
  void operator&(std::ostream&) const {}
};

inline const absl::Status& AsStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& AsStatus(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

}  // namespace plancast::check_internal

#define PLANCAST_FATAL_(condition) \
  ::plancast::check_internal::FatalMessage(__FILE__, __LINE__, condition).stream()

#define PLANCAST_CHECK(condition) \
  ABSL_PREDICT_TRUE(condition)    \
  ? (void)0 : ::plancast::check_internal::Voidify() & PLANCAST_FATAL_(#condition)

// The operands are evaluated a second time, for the message, only on failure.
#define PLANCAST_CHECK_OP_(a, op, b)                                           \
  ABSL_PREDICT_TRUE((a)op(b))                                                  \
  ? (void)0                                                                    \
  : ::plancast::check_internal::Voidify() & PLANCAST_FATAL_(#a " " #op " " #b) \
                                                << "(" << (a) << " vs " << (b) << ") "

#define PLANCAST_CHECK_EQ(a, b) PLANCAST_CHECK_OP_(a, ==, b)
#define PLANCAST_CHECK_NE(a, b) PLANCAST_CHECK_OP_(a, !=, b)
#define PLANCAST_CHECK_LT(a, b) PLANCAST_CHECK_OP_(a, <, b)
#define PLANCAST_CHECK_LE(a, b) PLANCAST_CHECK_OP_(a, <=, b)
#define PLANCAST_CHECK_GT(a, b) PLANCAST_CHECK_OP_(a, >, b)
#define PLANCAST_CHECK_GE(a, b) PLANCAST_CHECK_OP_(a, >=, b)

#define PLANCAST_CHECK_OK(expr)                                                         \
  for (absl::Status plancast_check_status = ::plancast::check_internal::AsStatus(expr); \
       ABSL_PREDICT_FALSE(!plancast_check_status.ok());)                                \
  PLANCAST_FATAL_(#expr " is OK") << "(" << plancast_check_status << ") "

#ifdef NDEBUG
#define PLANCAST_DCHECK_ENABLED_ false
#else
#define PLANCAST_DCHECK_ENABLED_ true
#endif

#define PLANCAST_DCHECK(condition) \
  while (PLANCAST_DCHECK_ENABLED_ && !(condition)) PLANCAST_FATAL_(#condition)
#define PLANCAST_DCHECK_OP_(a, op, b)             \
  while (PLANCAST_DCHECK_ENABLED_ && !((a)op(b))) \
  PLANCAST_FATAL_(#a " " #op " " #b) << "(" << (a) << " vs " << (b) << ") "

#define PLANCAST_DCHECK_EQ(a, b) PLANCAST_DCHECK_OP_(a, ==, b)
#define PLANCAST_DCHECK_NE(a, b) PLANCAST_DCHECK_OP_(a, !=, b)
#define PLANCAST_DCHECK_LT(a, b) PLANCAST_DCHECK_OP_(a, <, b)
#define PLANCAST_DCHECK_LE(a, b) PLANCAST_DCHECK_OP_(a, <=, b)
#define PLANCAST_DCHECK_GT(a, b) PLANCAST_DCHECK_OP_(a, >, b)
#define PLANCAST_DCHECK_GE(a, b) PLANCAST_DCHECK_OP_(a, >=, b)

#endif  // PLANCAST_BASE_CHECK_H_
