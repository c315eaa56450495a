#ifndef PLANCAST_TESTS_COMPILER_DUMP_PASS_H_
#define PLANCAST_TESTS_COMPILER_DUMP_PASS_H_

#include <iostream>
#include <string>

#include "tests/compiler/plan_under_test.h"

namespace plancast {

// Prints what pass `wanted` makes of a plan; an exit status.
inline int DumpPass(PlanUnderTest& plan, const std::string& wanted) {
  bool found = false;
  const auto status = plan.Compile([&](absl::string_view pass, const std::string& dump) {
                            if (pass != wanted) return;
                            found = true;
                            std::cout << dump;
                          })
                          .status();
  if (!status.ok()) std::cerr << status << "\n";
  if (!found) std::cerr << "no pass `" << wanted << "`\n";
  return status.ok() && found ? 0 : 1;
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_COMPILER_DUMP_PASS_H_
