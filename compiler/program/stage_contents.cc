#include "compiler/program/stage_contents.h"

#include <algorithm>

namespace plancast {

int32_t StageContents::chunks() const {
  const int64_t stages = static_cast<int64_t>(in_.stages->size());
  return static_cast<int32_t>((stages - stage_ + in_.options->pp - 1) / in_.options->pp);
}

int64_t StageContents::TiedHere(const StageRun& run) const {
  return in_.options->pp == 1 && run.segment == in_.first_tied_segment ? in_.tied_elements : 0;
}

int64_t StageContents::Parameters(const StageRun& run) const {
  return BodyOf(run).state.parameters - TiedHere(run);
}

int64_t StageContents::ReducedOverData(const StageRun& run) const {
  return std::max<int64_t>(0, BodyOf(run).state.reduced_over_data - TiedHere(run));
}

int64_t StageContents::TotalParameters() const {
  int64_t total = 0;
  ForEachRun([&](const StageRun& run) { total += Parameters(run) * run.count; });
  return total;
}

int64_t StageContents::HeldBytes() const {
  int64_t total = in_.profile->tensors.workspace_bytes;
  std::vector<const CompiledBody*> seen;
  ForEachRun([&](const StageRun& run) {
    total += BodyOf(run).held_bytes * run.count;
    const CompiledBody* const body = &BodyOf(run);
    const CompiledBody* const original = body->original == nullptr ? body : body->original;
    if (std::find(seen.begin(), seen.end(), original) != seen.end()) return;
    seen.push_back(original);
    total += BodyOf(run).held_shared_bytes;
  });
  return total;
}

int64_t StageContents::ProductParameters() const {
  int64_t total = 0;
  ForEachRun([&](const StageRun& run) {
    total += std::min(BodyOf(run).state.product_parameters, Parameters(run)) * run.count;
  });
  return total;
}

ElementsByAxes StageContents::CutParameters() const {
  ElementsByAxes totals;
  ForEachRun(
      [&](const StageRun& run) { AddTimes(BodyOf(run).state.cut_parameters, run.count, &totals); });
  return totals;
}

ElementsByAxes StageContents::ReducedOverOthers() const {
  ElementsByAxes totals;
  ForEachRun([&](const StageRun& run) {
    AddTimes(BodyOf(run).state.reduced_over_others, run.count, &totals);
  });
  return totals;
}

ElementsByAxes StageContents::ReducedOverBatch() const {
  ElementsByAxes totals;
  ForEachRun([&](const StageRun& run) {
    AddTimes(BodyOf(run).state.reduced_over_batch, run.count, &totals);
  });
  return totals;
}

}  // namespace plancast
