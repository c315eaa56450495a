#include "collectives/synthesis/problem.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace plancast {

absl::StatusOr<SynthesisProblem> MakeProblem(ProgramKind kind, int32_t nodes, int32_t copies,
                                             int32_t root) {
  SynthesisProblem problem;
  problem.copies = copies;
  const uint32_t all = (uint32_t{1} << nodes) - 1;
  const auto others = [&](int32_t node) { return all & ~(uint32_t{1} << node); };
  for (int32_t v = 0; v < nodes; ++v) {
    switch (kind) {
      case ProgramKind::kAllGather:
        problem.needs.push_back({v, others(v)});
        break;
      case ProgramKind::kBroadcast:
        if (v == root) problem.needs.push_back({v, others(v)});
        break;
      case ProgramKind::kGather:
        if (v != root) problem.needs.push_back({v, uint32_t{1} << root});
        break;
      case ProgramKind::kScatter:
        if (v != root) problem.needs.push_back({root, uint32_t{1} << v});
        break;
      case ProgramKind::kAllToAll:
        for (int32_t to = 0; to < nodes; ++to) {
          if (to != v) problem.needs.push_back({v, uint32_t{1} << to});
        }
        break;
      default:
        return absl::InvalidArgumentError(
            absl::StrCat("cannot synthesise ", kProgramKindNames[kind], "."));
    }
  }
  return problem;
}

int32_t SynchronousSchedule::rounds() const {
  int32_t rounds = 0;
  for (const Step& step : steps) rounds += step.rounds;
  return rounds;
}

}  // namespace plancast
