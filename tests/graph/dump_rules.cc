// Prints every shipped rule and its derived backward op.

#include <iostream>
#include <string>
#include <vector>

#include "graph/rule/op_rule.h"

int main() {
  for (const std::string& name : plancast::RuleNames()) {
    const plancast::OpRule& rule = **plancast::FindRule(name);
    std::cout << rule.DebugString() << "\n\n";
    // Tables and optimizer state have no derivable gradient.
    std::vector<std::string> wrt;
    for (const std::string& input : plancast::DifferentiableInputs(rule)) {
      if (plancast::Differentiate(rule, {input}).ok()) wrt.push_back(input);
    }
    if (!wrt.empty()) std::cout << plancast::Differentiate(rule, wrt)->DebugString() << "\n\n";
  }
}
