#ifndef PLANCAST_TESTS_TESTING_STATUS_MATCHERS_H_
#define PLANCAST_TESTS_TESTING_STATUS_MATCHERS_H_

#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Matchers for absl::Status and absl::StatusOr, which Abseil 20220623 lacks:
//   EXPECT_OK(graph.Verify());
//   EXPECT_THAT(Parse("8"), IsOkAndHolds(8));
//   EXPECT_THAT(Parse("x"), StatusIs(absl::StatusCode::kInvalidArgument,
//                                    HasSubstr("`x`")));
//   ASSERT_OK_AND_ASSIGN(Graph graph, Graph::FromProto(proto));

namespace plancast {
namespace testing_internal {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

// Matches a StatusOr that is OK and whose value matches.
template <typename Inner>
class IsOkAndHoldsMatcher {
 public:
  explicit IsOkAndHoldsMatcher(Inner inner) : inner_(std::move(inner)) {}

  template <typename StatusOrT>
  operator ::testing::Matcher<StatusOrT>() const {  // NOLINT(google-explicit-constructor)
    return ::testing::Matcher<StatusOrT>(new Impl<StatusOrT>(inner_));
  }

 private:
  template <typename StatusOrT>
  class Impl : public ::testing::MatcherInterface<StatusOrT> {
   public:
    using Value = typename std::decay_t<StatusOrT>::value_type;

    explicit Impl(const Inner& inner) : matcher_(::testing::SafeMatcherCast<const Value&>(inner)) {}

    void DescribeTo(std::ostream* os) const override {
      *os << "is OK and its value ";
      matcher_.DescribeTo(os);
    }
    void DescribeNegationTo(std::ostream* os) const override {
      *os << "is not OK, or its value ";
      matcher_.DescribeNegationTo(os);
    }
    bool MatchAndExplain(StatusOrT actual,
                         ::testing::MatchResultListener* listener) const override {
      if (!actual.ok()) {
        *listener << "whose status is " << actual.status().ToString();
        return false;
      }
      *listener << "whose value is " << ::testing::PrintToString(*actual) << " ";
      return matcher_.MatchAndExplain(*actual, listener);
    }

   private:
    const ::testing::Matcher<const Value&> matcher_;
  };

  const Inner inner_;
};

}  // namespace testing_internal

// The status explains itself in a failure through its own printer.
MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  const absl::Status& status = testing_internal::StatusOf(arg);
  if (!status.ok()) *result_listener << "whose status is " << status.ToString();
  return status.ok();
}

template <typename Inner>
testing_internal::IsOkAndHoldsMatcher<std::decay_t<Inner>> IsOkAndHolds(Inner&& inner) {
  return testing_internal::IsOkAndHoldsMatcher<std::decay_t<Inner>>(std::forward<Inner>(inner));
}

MATCHER_P(StatusIs, code, "has status code " + absl::StatusCodeToString(code)) {
  const absl::Status& status = testing_internal::StatusOf(arg);
  *result_listener << "whose status is " << status.ToString();
  return status.code() == code;
}

MATCHER_P2(StatusIs, code, message,
           "has status code " + absl::StatusCodeToString(code) + " and a message that " +
               ::testing::DescribeMatcher<std::string>(message)) {
  const absl::Status& status = testing_internal::StatusOf(arg);
  *result_listener << "whose status is " << status.ToString() << " ";
  return status.code() == code &&
         ::testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

}  // namespace plancast

#define EXPECT_OK(expr) EXPECT_THAT(expr, ::plancast::IsOk())
#define ASSERT_OK(expr) ASSERT_THAT(expr, ::plancast::IsOk())

#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  PLANCAST_ASSERT_OK_AND_ASSIGN_(PLANCAST_TEST_CONCAT_(status_or_, __LINE__), lhs, expr)
#define PLANCAST_ASSERT_OK_AND_ASSIGN_(status_or, lhs, expr) \
  auto status_or = (expr);                                   \
  ASSERT_THAT(status_or, ::plancast::IsOk());                \
  lhs = *std::move(status_or)
#define PLANCAST_TEST_CONCAT_INNER_(a, b) a##b
#define PLANCAST_TEST_CONCAT_(a, b) PLANCAST_TEST_CONCAT_INNER_(a, b)

#endif  // PLANCAST_TESTS_TESTING_STATUS_MATCHERS_H_
