#ifndef PLANCAST_BASE_STATUS_MACROS_H_
#define PLANCAST_BASE_STATUS_MACROS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace plancast {

// A failed status on its way up, to which each caller may add the place it
// knows: streamed text goes before the message, as in "place: what is wrong".
class StatusBuilder {
 public:
  explicit StatusBuilder(absl::Status status) : status_(std::move(status)) {}

  template <typename T>
  StatusBuilder& operator<<(const T& text) {
    absl::StrAppend(&place_, text);
    return *this;
  }

  operator absl::Status() const {  // NOLINT(google-explicit-constructor)
    if (place_.empty()) return status_;
    absl::Status placed(status_.code(), absl::StrCat(place_, ": ", status_.message()));
    status_.ForEachPayload(
        [&](absl::string_view url, const absl::Cord& payload) { placed.SetPayload(url, payload); });
    return placed;
  }

 private:
  absl::Status status_;
  std::string place_;
};

}  // namespace plancast

// Returns the status of `expr` from the function unless it is OK:
//   RETURN_IF_ERROR(graph.Verify());
//   RETURN_IF_ERROR(graph.Verify()) << "layer `" << name << "`";
#define RETURN_IF_ERROR(expr)                                          \
  switch (0) /* keeps a dangling `else` from binding to this `if` */   \
  case 0:                                                              \
  default:                                                             \
    if (absl::Status plancast_status = (expr); plancast_status.ok()) { \
    } else                                                             \
      return ::plancast::StatusBuilder(std::move(plancast_status))

// Moves the value of a StatusOr into `lhs`, or returns its status:
//   ASSIGN_OR_RETURN(Graph graph, Graph::FromProto(proto));
//   ASSIGN_OR_RETURN(Graph graph, Graph::FromProto(proto), _ << "`" << path << "`");
// Write `(auto [a, b])` where the left side holds a comma.
#define ASSIGN_OR_RETURN(...)                                              \
  PLANCAST_PICK_4_(__VA_ARGS__, PLANCAST_ASSIGN_3_, PLANCAST_ASSIGN_2_, ~) \
  (PLANCAST_CONCAT_(plancast_status_or_, __LINE__), __VA_ARGS__)

#define PLANCAST_PICK_4_(a, b, c, picked, ...) picked
#define PLANCAST_CONCAT_INNER_(a, b) a##b
#define PLANCAST_CONCAT_(a, b) PLANCAST_CONCAT_INNER_(a, b)

#define PLANCAST_ASSIGN_2_(status_or, lhs, expr) PLANCAST_ASSIGN_3_(status_or, lhs, expr, _)
#define PLANCAST_ASSIGN_3_(status_or, lhs, expr, builder)       \
  auto status_or = (expr);                                      \
  if (!status_or.ok()) {                                        \
    ::plancast::StatusBuilder _(std::move(status_or).status()); \
    return (builder);                                           \
  }                                                             \
  PLANCAST_STRIP_PARENS_(lhs) = *std::move(status_or)

// Drops one pair of parentheses around `x`, if there.
#define PLANCAST_STRIP_PARENS_(x) PLANCAST_STRIP_RESULT_(PLANCAST_STRIP_PROBE_ x)
#define PLANCAST_STRIP_PROBE_(...) PLANCAST_STRIP_PROBE_ __VA_ARGS__
#define PLANCAST_STRIP_RESULT_(...) PLANCAST_STRIP_PASTE_(__VA_ARGS__)
#define PLANCAST_STRIP_PASTE_(...) PLANCAST_STRIP_ERASE_##__VA_ARGS__
#define PLANCAST_STRIP_ERASE_PLANCAST_STRIP_PROBE_

#endif  // PLANCAST_BASE_STATUS_MACROS_H_
