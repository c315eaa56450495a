#ifndef PLANCAST_COMPILER_BODY_PIECE_LOOP_H_
#define PLANCAST_COMPILER_BODY_PIECE_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/body/body_plan.h"

namespace plancast {

// Steps that are to be run in pieces are marked while they are looked for, by what they are for,
// in PlanStep::piece.
int MarkOf(Part part);
bool IsMarked(int piece);

// Per value: marked steps make it, read it; others make or read it, or it is at a port.
struct ValueUses {
  std::vector<bool> made, read, beside;
};
ValueUses UsesOf(const BodyPlan& plan);

// What of a list of steps goes before a loop over pieces, into it, and behind it, each in order.
struct PieceLoop {
  std::vector<int> before, steps, after;
};

// The loop over steps with these marks; none if a step needs some of them, and is needed by
// others: step `between`. `values`: how many the plan has.
std::optional<PieceLoop> LoopOf(const std::vector<PlanStep>& steps, const std::vector<int>& marks,
                                size_t values, int* between);

// The marks of each loop of a list: forward steps, those that run again and gradients; these two
// together where they can be. `together`: all in one.
std::vector<std::vector<int>> LoopsOf(const std::vector<PlanStep>& steps, bool together,
                                      size_t values);

// Which piece is next, and with which of its steps.
struct PieceTurn {
  int64_t piece = 0;
  bool forward = true, backward = true;

  bool Has(int mark) const;
};
// In order: all pieces; or so many forward, then one back and the next forward in turn.
std::vector<PieceTurn> TurnsOf(const PieceRun& run);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BODY_PIECE_LOOP_H_
