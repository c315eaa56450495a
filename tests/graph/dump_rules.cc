// Prints every shipped rule and its derived backward: the golden text of
// tests/graph.

#include <iostream>
#include <string>

#include "graph/op_rule.h"

int main() {
  for (const std::string& name : plancast::RuleNames()) {
    const plancast::OpRule& rule = **plancast::FindRule(name);
    std::cout << rule.DebugString() << "\n\n";
    if (rule.saves().empty() && name.find("add") == std::string::npos) continue;
    std::vector<std::string> wrt = plancast::DifferentiableInputs(rule);
    if (name == "rotary" || name == "rotary_kv") wrt = {"x"};
    auto backward = plancast::Differentiate(rule, wrt);
    std::cout << (backward.ok() ? backward->DebugString() : backward.status().ToString())
              << "\n\n";
  }
}
