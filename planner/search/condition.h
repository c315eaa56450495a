#ifndef PLANCAST_PLANNER_SEARCH_CONDITION_H_
#define PLANCAST_PLANNER_SEARCH_CONDITION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "strategy/choose_plan.h"
#include "strategy/short_form.h"

namespace plancast {

// What a plan must be, in the user's words: `tp<=8 and mb*seq<=16384`. Numbers (dp, tp, pp, vpp,
// cp, ep, etp, zero, hsdp, mb, accum, sp, gpus, seq, batch, layers) are added, subtracted,
// multiplied, divided (also with remainder, `%`) and compared, `1 < tp <= 8` too; words
// (recompute, schedule, cp_type, attn) are compared by == and !=; `and`, `or`, `not` and
// parentheses join comparisons.
class PlanCondition {
 public:
  // Errors name the place and what may stand there.
  static absl::StatusOr<PlanCondition> Parse(absl::string_view text);

  // `plan` says dp, tp and pp; `context.global_batch` is set.
  bool Holds(const ShortForm& plan, const PlanContext& context) const;
  const std::string& text() const { return text_; }

 private:
  friend class PlanConditionParser;
  // In the order in which a stack of values works it off.
  struct Step {
    enum Kind : uint8_t {
      kNumber,
      kName,
      kWord,
      kTextName,
      kAdd,
      kSubtract,
      kMultiply,
      kDivide,
      kRemainder,
      kNegate,
      kLess,
      kAtMost,
      kMore,
      kAtLeast,
      kEqual,
      kUnequal,
      kSameWord,
      kOtherWord,
      kAnd,
      kOr,
      kNot
    };
    Kind kind = kNumber;
    double number = 0;
    int name = 0;  // of numbers, or of words
    std::string word;
  };

  std::string text_;
  std::vector<Step> steps_;
};

}  // namespace plancast

#endif  // PLANCAST_PLANNER_SEARCH_CONDITION_H_
