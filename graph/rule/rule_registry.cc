#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "graph/rule/op_rule.h"
#include "graph/rule/rule_files.h"
#include "graph/rule/rule_parser.h"

namespace plancast {
namespace {

struct ShippedRule {
  OpRulePtr rule;          // attributes at their defaults
  absl::string_view file;  // the text that it is in
};
using RuleTable = absl::btree_map<std::string, ShippedRule>;

const RuleTable& ShippedRules() {
  static const RuleTable* const table = [] {
    auto* rules = new RuleTable;
    for (const EmbeddedFile& file : RuleFiles()) {
      absl::StatusOr<std::vector<OpRule>> parsed = ParseRules(file.contents);
      PLANCAST_CHECK_OK(parsed) << std::string(file.path);
      for (OpRule& rule : *parsed) {
        std::string name = rule.name();
        const bool added =
            rules
                ->emplace(name, ShippedRule{std::make_shared<const OpRule>(std::move(rule)),
                                            file.contents})
                .second;
        PLANCAST_CHECK(added) << "two rules are called " << name;
      }
    }
    return rules;
  }();
  return *table;
}

// `conv2d(stride=2, pad=1)`: the name and what is in the brackets.
absl::StatusOr<RuleBindings> ParseCall(absl::string_view call) {
  RuleBindings bindings;
  const size_t open = call.find('(');
  bindings.rule = std::string(absl::StripAsciiWhitespace(call.substr(0, open)));
  if (open == absl::string_view::npos) return bindings;
  absl::string_view inside = call.substr(open + 1);
  if (!absl::ConsumeSuffix(&inside, ")")) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", call, "` has no closing bracket. Write `", bindings.rule, "(name=1)`."));
  }
  for (absl::string_view part : absl::StrSplit(inside, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(part, '=');
    int64_t value = 0;
    if (!absl::SimpleAtoi(pair.second, &value) || value > 1000000 || value < -1000000) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", call, "`: `", absl::StripAsciiWhitespace(part),
                       "` binds no whole number up to a million. Write `",
                       absl::StripAsciiWhitespace(pair.first), "=1`."));
    }
    bindings.values[std::string(absl::StripAsciiWhitespace(pair.first))] = value;
  }
  return bindings;
}

// How many dims `...` has where the inputs have these numbers; nothing if the rule
// has none.
std::optional<int64_t> EllipsisRank(const OpRule& rule, absl::Span<const int64_t> input_ranks) {
  for (size_t i = 0; i < std::min(input_ranks.size(), rule.inputs().size()); ++i) {
    // By default it stands for one dim.
    const std::vector<int>& dims = rule.tensors()[rule.inputs()[i]].factors;
    for (int f : dims) {
      if (rule.factors()[f] == "_1") return input_ranks[i] + 1 - static_cast<int64_t>(dims.size());
    }
  }
  return std::nullopt;
}

absl::StatusOr<OpRulePtr> Find(absl::string_view call, absl::Span<const int64_t> input_ranks) {
  ASSIGN_OR_RETURN(RuleBindings bindings, ParseCall(call));
  const RuleTable& rules = ShippedRules();
  auto it = rules.find(bindings.rule);
  if (it == rules.end()) {
    return absl::NotFoundError(
        absl::StrCat("no op rule `", bindings.rule, "`; the shipped ones are ",
                     JoinQuoted(RuleNames(), 100), ".", DidYouMean(bindings.rule, RuleNames())));
  }
  const std::optional<int64_t> rank = EllipsisRank(*it->second.rule, input_ranks);
  if (rank.has_value() && *rank != 1) bindings.values.emplace("rank", *rank);
  if (bindings.values.empty()) return it->second.rule;
  ASSIGN_OR_RETURN(std::vector<OpRule> parsed, ParseRules(it->second.file, bindings));
  for (OpRule& rule : parsed) {
    if (rule.name() == bindings.rule) return std::make_shared<const OpRule>(std::move(rule));
  }
  PLANCAST_CHECK(false) << bindings.rule;
  return it->second.rule;
}

}  // namespace

absl::StatusOr<OpRulePtr> FindRule(absl::string_view call) { return Find(call, {}); }

absl::StatusOr<OpRulePtr> FindRule(absl::string_view call, absl::Span<const int64_t> input_ranks) {
  return Find(call, input_ranks);
}

std::vector<std::string> RuleNames() {
  std::vector<std::string> names;
  for (const auto& [name, rule] : ShippedRules()) names.push_back(name);
  return names;
}

}  // namespace plancast
