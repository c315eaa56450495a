#include "compiler/program/stage_contents.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace plancast {

StageContents::StageContents(const ProgramInputs& inputs, int64_t stage)
    : in_(inputs), stage_(stage), plan_homes_(HomesOfPlan(*inputs.options)) {
  for (const SharedParameter& parameter : *in_.shared) {
    for (size_t u = 0; u < parameter.uses.size(); ++u) {
      const SharedParameter::Use& use = parameter.uses[u];
      if (use.stage != stage || !parameter.IsBorrowed(u)) continue;
      borrowed_.push_back({use.segment, use.layer, parameter.elements, parameter.frozen});
    }
  }
}

int64_t StageContents::Borrows(const StageRun& run, bool frozen) const {
  int64_t elements = 0;
  for (const Borrowed& borrowed : borrowed_) {
    const int64_t layer = borrowed.layer - run.layer_begin;
    const bool here = borrowed.frozen == frozen && borrowed.segment == run.segment && layer >= 0 &&
                      layer < BodyOf(run).blocks.forward.block.layers;
    if (here) elements += borrowed.elements;
  }
  return elements;
}

int64_t StageContents::Parameters(const StageRun& run) const {
  return BodyOf(run).state.parameters - BorrowedBy(run);
}

int64_t StageContents::Parameters(const StageRun& run, const HomePart& part) const {
  return part.state->parameters - BorrowedBy(run);
}

int64_t StageContents::ReducedOverData(const StageRun& run, const HomePart& part) const {
  return std::max<int64_t>(0, part.state->reduced_over_data - BorrowedBy(run));
}

int64_t StageContents::TotalParameters() const {
  int64_t total = 0;
  ForEachRun([&](const StageRun& run) { total += Parameters(run) * run.count; });
  return total;
}

FrozenParameters StageContents::TotalFrozen() const {
  FrozenParameters total;
  ForEachRun([&](const StageRun& run) {
    AddFrozen(run, HomePart{plan_homes_, &BodyOf(run).state, nullptr}, &total);
  });
  return total;
}

void StageContents::AddFrozen(const StageRun& run, const HomePart& part,
                              FrozenParameters* total) const {
  const FrozenParameters& frozen = part.state->frozen;
  const int64_t own = frozen.elements - FrozenBorrowedBy(run);
  total->elements += own * run.count;
  total->products += std::min(frozen.products, own) * run.count;
  total->nf4 += frozen.nf4 * run.count;
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

bool StageContents::ReducesOverBatch() const {
  bool reduces = false;
  ForEachRun([&](const StageRun& run) {
    reduces = reduces || !BodyOf(run).state.reduced_over_batch.empty();
  });
  return reduces;
}

ElementsByStages CopiedParameters(const ProgramInputs& inputs) {
  ElementsByStages copied;
  const StagePlacement& placement = *inputs.placement;
  if (placement.copies() == 1) return copied;
  for (int64_t part = 0; part < placement.depth(); ++part) {
    int64_t elements = 0;
    for (const StageRun& run : (*inputs.stages)[part]) {
      elements += (*inputs.bodies)[run.bound_body]->state.parameters * run.count;
    }
    for (const SharedParameter& shared : *inputs.shared) {
      const auto of_one = static_cast<std::ptrdiff_t>(shared.uses.size()) / placement.copies();
      const int64_t uses =
          std::count_if(shared.uses.begin(), shared.uses.begin() + of_one,
                        [&](const SharedParameter::Use& use) { return use.part == part; });
      if (!shared.frozen) elements -= uses * shared.elements;
    }
    std::vector<int64_t> stages;
    for (int64_t copy = 0; copy < placement.copies(); ++copy) {
      stages.push_back(placement.StageOf(copy * placement.depth() + part));
    }
    std::sort(stages.begin(), stages.end());
    if (elements > 0) copied[std::move(stages)] += elements;
  }
  return copied;
}

void SayWhere(const ProgramInputs& inputs, int64_t stage, Program* program) {
  const DeviceMesh& mesh = *inputs.mesh;
  program->name = absl::StrCat("stage ", stage);
  program->where = {{mesh.FindAxis("pp").value(), stage}};
  if (inputs.place == nullptr || inputs.place->empty()) return;
  const std::vector<int32_t>& at = inputs.place->at;
  for (int a = 0; a < mesh.num_axes(); ++a) {
    if (at[a] < 0) continue;
    program->where.emplace_back(a, at[a]);
    absl::StrAppend(&program->name, " ", mesh.axis(a).name, "=", at[a]);
  }
}

}  // namespace plancast
