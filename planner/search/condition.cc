#include "planner/search/condition.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"

namespace plancast {
namespace {

constexpr absl::string_view kNumbers[] = {"dp",   "tp",   "pp",    "vpp",   "cp",    "ep",
                                          "etp",  "zero", "hsdp",  "mb",    "accum", "sp",
                                          "gpus", "seq",  "batch", "layers"};
constexpr absl::string_view kWords[] = {"recompute", "schedule", "cp_type", "attn"};

template <size_t N>
int IndexOf(const absl::string_view (&names)[N], absl::string_view name) {
  const auto* const at = std::find(std::begin(names), std::end(names), name);
  return at == std::end(names) ? -1 : static_cast<int>(at - std::begin(names));
}

double NumberOf(int name, const ShortForm& plan, const PlanContext& context) {
  const auto said = [](const std::optional<int64_t>& value, int64_t otherwise) {
    return static_cast<double>(value.value_or(otherwise));
  };
  const double batch = said(context.global_batch, 1);
  switch (name) {
    case 0:
      return said(plan.dp, 1);
    case 1:
      return said(plan.tp, 1);
    case 2:
      return said(plan.pp, 1);
    case 3:
      return said(plan.vpp, 1);
    case 4:
      return said(plan.cp, 1);
    case 5:
      return said(plan.ep, 1);
    case 6:
      return said(plan.etp, plan.tp.value_or(1));
    case 7:
      return said(plan.zero, 0);
    case 8:
      return said(plan.hsdp, 1);
    case 9:
      return said(plan.mb, 1);
    case 10:
      return said(plan.accum, static_cast<int64_t>(batch / said(plan.dp, 1) / said(plan.mb, 1)));
    case 11:
      return plan.sp ? 1 : 0;
    case 12:
      return static_cast<double>(context.devices);
    case 13:
      return static_cast<double>(context.seq);
    case 14:
      return batch;
    default:
      return static_cast<double>(context.layers);
  }
}

std::string WordOf(int name, const ShortForm& plan) {
  switch (name) {
    case 0:
      return plan.recompute.value_or("none");
    case 1:
      return plan.schedule.value_or(plan.pp.value_or(1) == 1   ? "none"
                                    : plan.vpp.value_or(1) > 1 ? "interleaved"
                                                               : "1f1b");
    case 2:
      return plan.cp_type.value_or("none");
    default:
      return plan.attn.value_or("flash");
  }
}

}  // namespace

// Of one text, by recursive descent.
class PlanConditionParser {
 public:
  explicit PlanConditionParser(absl::string_view text) : text_(text) {}

  absl::StatusOr<PlanCondition> Run() {
    ASSIGN_OR_RETURN(const Type type, Or());
    Skip();
    if (at_ < text_.size()) {
      return Bad(absl::StrCat("`", text_.substr(at_), "` is left over"),
                 "Join comparisons with `and` or `or`.");
    }
    RETURN_IF_ERROR(Must(type, kTruth));
    condition_.text_ = std::string(absl::StripAsciiWhitespace(text_));
    return std::move(condition_);
  }

 private:
  using Step = PlanCondition::Step;
  enum Type { kNumberType, kTruth, kText };
  static constexpr int kDeepest = 100;

  absl::Status Bad(absl::string_view what, absl::string_view remedy) const {
    return absl::InvalidArgumentError(absl::StrCat("where `", text_, "`: ", what, ". ", remedy));
  }

  absl::Status Must(Type is, Type wanted) const {
    if (is == wanted) return absl::OkStatus();
    if (wanted == kTruth) {
      return Bad(is == kText ? "a word is no condition" : "a number is no condition",
                 "Compare it: `tp<=8`, `recompute=='full'`.");
    }
    return Bad("a number is wanted where something else stands",
               absl::StrCat("Numbers are ", absl::StrJoin(kNumbers, ", "), "."));
  }

  void Skip() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }
  // Takes a sign, or a whole word.
  bool Take(absl::string_view token) {
    Skip();
    if (text_.substr(at_, token.size()) != token) return false;
    const size_t end = at_ + token.size();
    const auto in_word = [&](size_t i) {
      return i < text_.size() && (absl::ascii_isalnum(text_[i]) || text_[i] == '_');
    };
    if (absl::ascii_isalpha(token[0]) && in_word(end)) return false;
    at_ = end;
    return true;
  }
  void Add(Step::Kind kind) { condition_.steps_.emplace_back().kind = kind; }

  template <typename Next>
  absl::StatusOr<Type> Joined(absl::string_view word, Step::Kind kind, const Next& next) {
    ASSIGN_OR_RETURN(Type type, next());
    while (Take(word)) {
      RETURN_IF_ERROR(Must(type, kTruth));
      ASSIGN_OR_RETURN(type, next());
      RETURN_IF_ERROR(Must(type, kTruth));
      Add(kind);
    }
    return type;
  }

  absl::StatusOr<Type> Or() {
    if (++depth_ > kDeepest) return Bad("it is nested too deeply", "Take fewer parentheses.");
    const absl::StatusOr<Type> type =
        Joined("or", Step::kOr, [&] { return Joined("and", Step::kAnd, [&] { return Not(); }); });
    --depth_;
    return type;
  }

  absl::StatusOr<Type> Not() {
    int times = 0;
    while (Take("not")) ++times;
    ASSIGN_OR_RETURN(const Type type, Comparison());
    if (times == 0) return type;
    RETURN_IF_ERROR(Must(type, kTruth));
    if (times % 2 == 1) Add(Step::kNot);
    return kTruth;
  }

  absl::StatusOr<Type> Comparison() {
    const size_t left = condition_.steps_.size();
    ASSIGN_OR_RETURN(const Type type, Sum());
    if (type == kText) return WordComparison();
    size_t begin = left;
    bool compared = false;
    for (Step::Kind kind; TakeComparison(&kind);) {
      RETURN_IF_ERROR(Must(type, kNumberType));
      const size_t middle = condition_.steps_.size();
      if (compared) {
        // `a < b < c`: b once more.
        const std::vector<Step> again(condition_.steps_.begin() + static_cast<int64_t>(begin),
                                      condition_.steps_.begin() + static_cast<int64_t>(middle_));
        condition_.steps_.insert(condition_.steps_.end(), again.begin(), again.end());
      }
      begin = compared ? middle + (middle_ - begin) : middle;
      ASSIGN_OR_RETURN(const Type right, Sum());
      RETURN_IF_ERROR(Must(right, kNumberType));
      middle_ = condition_.steps_.size();
      Add(kind);
      if (compared) Add(Step::kAnd);
      compared = true;
    }
    return compared ? kTruth : type;
  }

  bool TakeComparison(Step::Kind* kind) {
    constexpr std::pair<absl::string_view, Step::Kind> kSigns[] = {
        {"<=", Step::kAtMost}, {">=", Step::kAtLeast}, {"==", Step::kEqual}, {"!=", Step::kUnequal},
        {"<", Step::kLess},    {">", Step::kMore},     {"=", Step::kEqual}};
    for (const auto& [sign, is] : kSigns) {
      if (!Take(sign)) continue;
      *kind = is;
      return true;
    }
    return false;
  }

  // Behind the name of a word.
  absl::StatusOr<Type> WordComparison() {
    Step::Kind kind;
    if (!TakeComparison(&kind) || (kind != Step::kEqual && kind != Step::kUnequal)) {
      return Bad("words are compared by == and != only", "Write `recompute=='full'`.");
    }
    Skip();
    Step step;
    step.kind = Step::kWord;
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    size_t end = at_;
    if (quote == '\'' || quote == '"') {
      end = text_.find(quote, at_ + 1);
      if (end == absl::string_view::npos) return Bad("a quote is open", "Close it.");
      step.word = std::string(text_.substr(at_ + 1, end - at_ - 1));
      ++end;
    } else {
      while (end < text_.size() && (absl::ascii_isalnum(text_[end]) || text_[end] == '_' ||
                                    text_[end] == '-' || text_[end] == ':')) {
        ++end;
      }
      step.word = std::string(text_.substr(at_, end - at_));
    }
    if (step.word.empty()) return Bad("a word is missing", "Write `recompute=='full'`.");
    at_ = end;
    condition_.steps_.push_back(std::move(step));
    Add(kind == Step::kEqual ? Step::kSameWord : Step::kOtherWord);
    return kTruth;
  }

  absl::StatusOr<Type> Sum() {
    ASSIGN_OR_RETURN(const Type type, Term());
    while (true) {
      const bool plus = Take("+");
      if (!plus && !Take("-")) return type;
      RETURN_IF_ERROR(Must(type, kNumberType));
      ASSIGN_OR_RETURN(const Type right, Term());
      RETURN_IF_ERROR(Must(right, kNumberType));
      Add(plus ? Step::kAdd : Step::kSubtract);
    }
  }

  absl::StatusOr<Type> Term() {
    ASSIGN_OR_RETURN(const Type type, Factor());
    while (true) {
      Step::Kind kind = Step::kMultiply;
      if (Take("/")) {
        kind = Step::kDivide;
      } else if (Take("%")) {
        kind = Step::kRemainder;
      } else if (!Take("*")) {
        return type;
      }
      RETURN_IF_ERROR(Must(type, kNumberType));
      ASSIGN_OR_RETURN(const Type right, Factor());
      RETURN_IF_ERROR(Must(right, kNumberType));
      Add(kind);
    }
  }

  absl::StatusOr<Type> Factor() {
    if (Take("(")) {
      ASSIGN_OR_RETURN(const Type type, Or());
      if (!Take(")")) return Bad("a parenthesis is open", "Close it.");
      return type;
    }
    if (Take("-")) {
      if (++depth_ > kDeepest) return Bad("it is nested too deeply", "Take fewer signs.");
      ASSIGN_OR_RETURN(const Type type, Factor());
      --depth_;
      RETURN_IF_ERROR(Must(type, kNumberType));
      Add(Step::kNegate);
      return type;
    }
    Skip();
    size_t end = at_;
    const auto is = [&](auto test) { return end < text_.size() && test(text_[end]); };
    Step step;
    if (is(absl::ascii_isdigit)) {
      while (is([](char c) { return absl::ascii_isdigit(c) || c == '.'; })) ++end;
      if (is([](char c) { return absl::ascii_isalpha(c); }) ||
          !absl::SimpleAtod(text_.substr(at_, end - at_), &step.number)) {
        return Bad(absl::StrCat("`", text_.substr(at_, end + 1 - at_), "` is no number"),
                   "Write it out: 16384.");
      }
      at_ = end;
      condition_.steps_.push_back(std::move(step));
      return kNumberType;
    }
    while (is([](char c) { return absl::ascii_isalnum(c) || c == '_'; })) ++end;
    const absl::string_view name = text_.substr(at_, end - at_);
    if (name.empty()) {
      const bool over = at_ >= text_.size();
      return Bad(over ? "something is missing at the end"
                      : absl::StrCat("`", text_.substr(at_, 1), "` is not understood"),
                 "Write a condition such as `tp<=8 and mb*seq<=16384`.");
    }
    at_ = end;
    step.name = IndexOf(kNumbers, name);
    if (step.name >= 0) {
      step.kind = Step::kName;
      condition_.steps_.push_back(std::move(step));
      return kNumberType;
    }
    step.name = IndexOf(kWords, name);
    if (step.name >= 0) {
      step.kind = Step::kTextName;
      condition_.steps_.push_back(std::move(step));
      return kText;
    }
    std::vector<absl::string_view> known(std::begin(kNumbers), std::end(kNumbers));
    known.insert(known.end(), std::begin(kWords), std::end(kWords));
    return Bad(absl::StrCat("there is no `", name, "`", DidYouMean(name, known)),
               absl::StrCat("There are ", absl::StrJoin(known, ", "), "."));
  }

  const absl::string_view text_;
  size_t at_ = 0;
  size_t middle_ = 0;  // end of the right side of the comparison before
  int depth_ = 0;
  PlanCondition condition_;
};

absl::StatusOr<PlanCondition> PlanCondition::Parse(absl::string_view text) {
  return PlanConditionParser(text).Run();
}

bool PlanCondition::Holds(const ShortForm& plan, const PlanContext& context) const {
  std::vector<double> values;
  std::vector<std::string> words;
  const auto two = [&](auto of) {
    const double right = values.back();
    values.pop_back();
    values.back() = of(values.back(), right);
  };
  const auto same = [&] {
    const bool equal = words[words.size() - 2] == words.back();
    words.resize(words.size() - 2);
    return equal;
  };
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Step::kNumber:
        values.push_back(step.number);
        break;
      case Step::kName:
        values.push_back(NumberOf(step.name, plan, context));
        break;
      case Step::kWord:
        words.push_back(step.word);
        break;
      case Step::kTextName:
        words.push_back(WordOf(step.name, plan));
        break;
      case Step::kAdd:
        two([](double a, double b) { return a + b; });
        break;
      case Step::kSubtract:
        two([](double a, double b) { return a - b; });
        break;
      case Step::kMultiply:
        two([](double a, double b) { return a * b; });
        break;
      case Step::kDivide:
        two([](double a, double b) { return a / b; });
        break;
      case Step::kRemainder:
        two([](double a, double b) { return std::fmod(a, b); });
        break;
      case Step::kNegate:
        values.back() = -values.back();
        break;
      case Step::kLess:
        two([](double a, double b) { return a < b ? 1.0 : 0.0; });
        break;
      case Step::kAtMost:
        two([](double a, double b) { return a <= b ? 1.0 : 0.0; });
        break;
      case Step::kMore:
        two([](double a, double b) { return a > b ? 1.0 : 0.0; });
        break;
      case Step::kAtLeast:
        two([](double a, double b) { return a >= b ? 1.0 : 0.0; });
        break;
      case Step::kEqual:
        two([](double a, double b) { return a == b ? 1.0 : 0.0; });
        break;
      case Step::kUnequal:
        two([](double a, double b) { return a != b ? 1.0 : 0.0; });
        break;
      case Step::kSameWord:
        values.push_back(same() ? 1 : 0);
        break;
      case Step::kOtherWord:
        values.push_back(same() ? 0 : 1);
        break;
      case Step::kAnd:
        two([](double a, double b) { return a * b; });
        break;
      case Step::kOr:
        two([](double a, double b) { return std::max(a, b); });
        break;
      case Step::kNot:
        values.back() = 1 - values.back();
        break;
    }
  }
  return values.back() != 0;
}

}  // namespace plancast
