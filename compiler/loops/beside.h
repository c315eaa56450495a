#ifndef PLANCAST_COMPILER_LOOPS_BESIDE_H_
#define PLANCAST_COMPILER_LOOPS_BESIDE_H_

#include <vector>

#include "compiler/body/body_plan.h"
#include "graph/collective_kind.h"
#include "graph/layout/layout.h"
#include "graph/layout/relayout.h"

namespace plancast {

// What stands before a step of a plan and behind it.

bool Contains(const std::vector<int>& list, int value);

// The single collective that a relayout is, or nullptr.
const RelayoutStep* OnlyCollective(const PlanStep& step, CollectiveKind kind);

// The dim of which `cut` has a part along each of `axes`, or -1.
int DimOver(const Layout& cut, const std::vector<int>& axes);

// Per value how many steps read it, who keeps it or hands it on among them.
std::vector<int> CountReaders(const BodyPlan& plan);

// The first step of the list that makes the value, or reads it; nullptr: none.
PlanStep* FindMaker(std::vector<PlanStep>* steps, int value);
PlanStep* FindReader(std::vector<PlanStep>* steps, int value);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOOPS_BESIDE_H_
