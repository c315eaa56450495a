#include "graph/rule/rule_parser.h"
#include "tests/fuzz/native/targets/groups.h"

namespace plancast {
namespace {

absl::Status Rules(absl::string_view bytes) { return ParseRules(bytes).status(); }

}  // namespace

std::vector<FuzzTarget> RuleTargets() {
  return {{"op_rules",
           Rules,
           {"factors", "where", "let", "size(", "...", "and", "sum", "max", "op", "rule", "->"},
           {"(", "[", "-", "exp(", "x[i,", "{"}}};
}

}  // namespace plancast
