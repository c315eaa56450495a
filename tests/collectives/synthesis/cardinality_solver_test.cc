#include "collectives/synthesis/cardinality_solver.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

using Answer = CardinalitySolver::Answer;

struct Constraint {
  std::vector<Literal> literals;
  int32_t most = -1;  // -1: a clause
};

bool Holds(const Constraint& constraint, uint32_t model) {
  int32_t held = 0;
  for (const Literal literal : constraint.literals) {
    const bool value = ((model >> literal.variable()) & 1) != 0;
    held += value != ((literal.code & 1) != 0) ? 1 : 0;
  }
  return constraint.most < 0 ? held > 0 : held <= constraint.most;
}

bool AllHold(const std::vector<Constraint>& constraints, uint32_t model) {
  for (const Constraint& constraint : constraints) {
    if (!Holds(constraint, model)) return false;
  }
  return true;
}

// Distinct variables with random signs.
std::vector<Literal> Draw(std::mt19937_64& random, int32_t variables, int32_t size) {
  std::vector<int32_t> order(variables);
  for (int32_t v = 0; v < variables; ++v) order[v] = v;
  std::shuffle(order.begin(), order.end(), random);
  std::vector<Literal> out;
  for (int32_t i = 0; i < size; ++i) {
    out.push_back({2 * order[i] + static_cast<int32_t>(random() % 2)});
  }
  return out;
}

TEST(CardinalitySolver, AgreesWithTryingEveryModel) {
  std::mt19937_64 random(TestSeed(20261122));
  constexpr int32_t kVariables = 12;
  int satisfiable = 0, cases = 600;
  for (int i = 0; i < cases; ++i) {
    std::vector<Constraint> constraints;
    const int clauses = 10 + static_cast<int>(random() % 40);
    for (int c = 0; c < clauses; ++c) constraints.push_back({Draw(random, kVariables, 3), -1});
    const int at_mosts = static_cast<int>(random() % 8);
    for (int c = 0; c < at_mosts; ++c) {
      const int32_t size = 3 + static_cast<int32_t>(random() % 8);
      constraints.push_back(
          {Draw(random, kVariables, size), static_cast<int32_t>(random() % (size - 1))});
    }
    CardinalitySolver solver;
    for (int32_t v = 0; v < kVariables; ++v) solver.NewVariable();
    for (const Constraint& constraint : constraints) {
      if (constraint.most < 0) {
        solver.AddClause(constraint.literals);
      } else {
        solver.AddAtMost(constraint.literals, constraint.most);
      }
    }
    bool exists = false;
    for (uint32_t model = 0; model < (1u << kVariables) && !exists; ++model) {
      exists = AllHold(constraints, model);
    }
    const Answer answer = solver.Solve(1'000'000);
    ASSERT_EQ(answer, exists ? Answer::kSatisfiable : Answer::kUnsatisfiable) << "case " << i;
    if (!exists) continue;
    ++satisfiable;
    uint32_t model = 0;
    for (int32_t v = 0; v < kVariables; ++v) {
      if (solver.Holds({2 * v})) model |= 1u << v;
    }
    EXPECT_TRUE(AllHold(constraints, model)) << "case " << i;
  }
  EXPECT_GT(satisfiable, cases / 10);
  EXPECT_LT(satisfiable, 9 * cases / 10);
}

// n + 1 pigeons in n holes: no model, and no short way to see it by clauses alone.
TEST(CardinalitySolver, ProvesThatPigeonsDoNotFit) {
  constexpr int32_t kHoles = 7;
  CardinalitySolver solver;
  std::vector<std::vector<Literal>> in_hole(kHoles);
  for (int32_t pigeon = 0; pigeon <= kHoles; ++pigeon) {
    std::vector<Literal> somewhere;
    for (int32_t hole = 0; hole < kHoles; ++hole) {
      somewhere.push_back(solver.NewVariable());
      in_hole[hole].push_back(somewhere.back());
    }
    solver.AddClause(std::move(somewhere));
  }
  for (std::vector<Literal>& literals : in_hole) solver.AddAtMost(std::move(literals), 1);
  EXPECT_EQ(solver.Solve(5'000'000), Answer::kUnsatisfiable);
}

TEST(CardinalitySolver, GivesUpWhenToldTo) {
  CardinalitySolver solver;
  std::vector<std::vector<Literal>> in_hole(9);
  for (int32_t pigeon = 0; pigeon < 10; ++pigeon) {
    std::vector<Literal> somewhere;
    for (auto& hole : in_hole) {
      somewhere.push_back(solver.NewVariable());
      hole.push_back(somewhere.back());
    }
    solver.AddClause(std::move(somewhere));
  }
  for (std::vector<Literal>& literals : in_hole) solver.AddAtMost(std::move(literals), 1);
  EXPECT_EQ(solver.Solve(3), Answer::kUnknown);
  EXPECT_EQ(solver.conflicts(), 3);
}

}  // namespace
}  // namespace plancast
