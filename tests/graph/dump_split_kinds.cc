// Prints how every shipped rule and its derived backward op may be cut.

#include <iostream>
#include <string>
#include <vector>

#include "graph/split/split_kinds.h"

int main() {
  for (const std::string& name : plancast::RuleNames()) {
    const plancast::OpRule& rule = **plancast::FindRule(name);
    std::cout << rule.name() << "\n" << plancast::SplitKindsText(rule);
    for (const std::string& input : plancast::DifferentiableInputs(rule)) {
      const auto backward = plancast::Differentiate(rule, {input});
      if (!backward.ok()) continue;  // tables and optimizer state
      std::cout << backward->name() << "\n" << plancast::SplitKindsText(*backward);
    }
    std::cout << "\n";
  }
}
