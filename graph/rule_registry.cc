#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/suggest.h"
#include "graph/op_rule.h"
#include "graph/rule_files.h"
#include "graph/rule_parser.h"

namespace plancast {
namespace {

using RuleTable = absl::btree_map<std::string, OpRulePtr>;

const RuleTable& ShippedRules() {
  static const RuleTable* const table = [] {
    auto* rules = new RuleTable;
    for (const EmbeddedFile& file : RuleFiles()) {
      absl::StatusOr<std::vector<OpRule>> parsed = ParseRules(file.contents);
      PLANCAST_CHECK_OK(parsed) << std::string(file.path);
      for (OpRule& rule : *parsed) {
        std::string name = rule.name();
        const bool added =
            rules->emplace(name, std::make_shared<const OpRule>(std::move(rule))).second;
        PLANCAST_CHECK(added) << "two rules are called " << name;
      }
    }
    return rules;
  }();
  return *table;
}

}  // namespace

absl::StatusOr<OpRulePtr> FindRule(absl::string_view name) {
  const RuleTable& rules = ShippedRules();
  if (auto it = rules.find(std::string(name)); it != rules.end()) return it->second;
  return absl::NotFoundError(absl::StrCat("no op rule `", name, "`; the shipped ones are ",
                                          JoinQuoted(RuleNames(), 100), ".",
                                          DidYouMean(name, RuleNames())));
}

std::vector<std::string> RuleNames() {
  std::vector<std::string> names;
  for (const auto& [name, rule] : ShippedRules()) names.push_back(name);
  return names;
}

}  // namespace plancast
