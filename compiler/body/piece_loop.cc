#include "compiler/body/piece_loop.h"

#include <algorithm>

namespace plancast {
namespace {

// Below all numbers of pieces.
constexpr int kForwardMark = -2, kAgainMark = -3, kBackMark = -4;

bool Has(const std::vector<int>& marks, int mark) {
  return std::find(marks.begin(), marks.end(), mark) != marks.end();
}

}  // namespace

int MarkOf(Part part) {
  switch (part) {
    case Part::kForward:
      return kForwardMark;
    case Part::kRecompute:
      return kAgainMark;
    default:
      return kBackMark;
  }
}

bool IsMarked(int piece) { return piece <= kForwardMark; }

ValueUses UsesOf(const BodyPlan& plan) {
  const std::vector<bool> none(plan.values.size(), false);
  ValueUses uses{none, none, none};
  for (const std::vector<PlanStep>* steps : {&plan.forward, &plan.backward}) {
    for (const PlanStep& step : *steps) {
      const bool marked = IsMarked(step.piece);
      ForEachRead(step, [&](int value) { (marked ? uses.read : uses.beside)[value] = true; });
      for (const int value : step.outputs) (marked ? uses.made : uses.beside)[value] = true;
    }
  }
  for (const std::vector<int>* ports :
       {&plan.in_ports, &plan.out_ports, &plan.grad_in_ports, &plan.grad_out_ports}) {
    for (const int value : *ports) {
      if (value >= 0) uses.beside[value] = true;
    }
  }
  return uses;
}

std::optional<PieceLoop> LoopOf(const std::vector<PlanStep>& steps, const std::vector<int>& marks,
                                size_t values, int* between) {
  PieceLoop loop;
  size_t last = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    if (Has(marks, steps[s].piece)) last = s;
  }
  enum Origin : char { kBefore, kLoop, kBehind };
  std::vector<char> made(values, kBefore), place(steps.size(), kBefore);
  for (size_t s = 0; s < steps.size(); ++s) {
    const PlanStep& step = steps[s];
    char needs = kBefore;
    ForEachRead(step, [&](int value) { needs = std::max(needs, made[value]); });
    if (step.after >= 0) needs = std::max(needs, place[step.after]);
    const bool inside = Has(marks, step.piece);
    if (inside && needs == kBehind) {
      ForEachRead(step, [&](int value) {
        for (size_t p = 0; p < s; ++p) {
          const bool makes = std::find(steps[p].outputs.begin(), steps[p].outputs.end(), value) !=
                             steps[p].outputs.end();
          if (makes && place[p] == kBehind) *between = static_cast<int>(p);
        }
      });
      if (step.after >= 0 && place[step.after] == kBehind) *between = step.after;
      return std::nullopt;
    }
    place[s] = inside ? kLoop : needs > kBefore || s > last ? kBehind : kBefore;
    for (const int value : step.outputs) made[value] = place[s];
    (inside                ? loop.steps
     : place[s] == kBehind ? loop.after
                           : loop.before)
        .push_back(static_cast<int>(s));
  }
  return loop;
}

std::vector<std::vector<int>> LoopsOf(const std::vector<PlanStep>& steps, bool together,
                                      size_t values) {
  const auto any = [&](int mark) {
    return std::any_of(steps.begin(), steps.end(),
                       [mark](const PlanStep& step) { return step.piece == mark; });
  };
  const bool forward = any(kForwardMark), back = any(kAgainMark) || any(kBackMark);
  if (together && (forward || back)) return {{kForwardMark, kAgainMark, kBackMark}};
  std::vector<std::vector<int>> loops;
  if (forward) loops.push_back({kForwardMark});
  if (!back) return loops;
  int between = -1;
  if (LoopOf(steps, {kAgainMark, kBackMark}, values, &between).has_value()) {
    loops.push_back({kAgainMark, kBackMark});
  } else {
    loops.push_back({kAgainMark});
    loops.push_back({kBackMark});
  }
  return loops;
}

bool PieceTurn::Has(int mark) const { return mark == kForwardMark ? forward : backward; }

std::vector<PieceTurn> TurnsOf(const PieceRun& run) {
  std::vector<PieceTurn> turns;
  if (!run.turns()) {
    for (int64_t piece = 0; piece < run.pieces; ++piece) turns.push_back({piece});
    return turns;
  }
  for (int64_t piece = 0; piece < run.max_ongoing; ++piece) turns.push_back({piece, true, false});
  for (int64_t piece = 0; piece < run.pieces; ++piece) {
    turns.push_back({piece, false, true});
    const int64_t next = piece + run.max_ongoing;
    if (next < run.pieces) turns.push_back({next, true, false});
  }
  return turns;
}

}  // namespace plancast
