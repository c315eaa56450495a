#ifndef PLANCAST_STRATEGY_SCHEDULE_SCHEDULE_TABLE_H_
#define PLANCAST_STRATEGY_SCHEDULE_SCHEDULE_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// One turn of a stage: the forward pass (F), the backward pass (B) or the one that makes gradients
// of weights (W), of one micro-batch through one chunk (the stage's chunk-th virtual stage).
// Without W, those are part of B.
struct ScheduleStep {
  Phase phase = Phase::kForward;
  int32_t micro_batch = 0;
  int32_t chunk = 0;
  // F that runs as a pair with the step behind it, B of another micro-batch: layer by layer their
  // tasks take turns where one waits for tokens of experts (pair_blocks.h).
  bool pairs = false;

  friend bool operator==(const ScheduleStep& a, const ScheduleStep& b) {
    return a.phase == b.phase && a.micro_batch == b.micro_batch && a.chunk == b.chunk &&
           a.pairs == b.pairs;
  }
};

// For every stage what it does, in order. Nothing says that it can be run (check_schedule.h).
struct ScheduleTable {
  std::vector<std::vector<ScheduleStep>> stages;
  std::string placement = {};  // of virtual stages (StagePlacement::Parse)

  friend bool operator==(const ScheduleTable& a, const ScheduleTable& b) {
    return a.stages == b.stages && a.placement == b.placement;
  }
};

// Whether gradients of weights are passes of their own (W); of a table, or of the text of one.
bool ListsWeights(const ScheduleTable& table);
bool ListsWeights(absl::string_view text);

// Whether any steps are pairs; of a table, or of the text of one.
bool ListsPairs(const ScheduleTable& table);
bool ListsPairs(absl::string_view text);

// `F0.0`: phase, micro-batch, chunk.
std::string StepString(const ScheduleStep& step);
// `F0.0 F1.0&B0.0 ...`: with `&` between the steps of a pair.
std::string ScheduleString(const std::vector<ScheduleStep>& steps);

// The text of a table in the strategy language: a row for each stage, with `;` between them,
// `F0.0 F1.0 B0.0 B1.0;F0.0 B0.0 F1.0 B1.0`; before them the placement, if there is one: `v: `.
std::string PrintScheduleTable(const ScheduleTable& table);
// Reads it; `F0` is chunk 0. Errors: words that are no steps, or no pairs, with stage and position
// (both from 0); a row without steps.
absl::StatusOr<ScheduleTable> ParseScheduleTable(absl::string_view text);
// Whether a text is meant as one: it says a placement, or its first word looks like a step.
bool LooksLikeScheduleTable(absl::string_view text);
// What it says of the placement; empty: nothing.
absl::string_view PlacementText(absl::string_view text);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SCHEDULE_SCHEDULE_TABLE_H_
