#include "collectives/synthesis/synthesise.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "collectives/programs/check/check.h"
#include "collectives/synthesis/schedule_program.h"

namespace plancast {
namespace {

constexpr int32_t kMostSteps = 32, kMostRounds = 256;

// The kind whose schedule, run backwards, is `kind`'s.
ProgramKind Dual(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::kReduceScatter:
    case ProgramKind::kAllReduce:
      return ProgramKind::kAllGather;
    case ProgramKind::kReduce:
      return ProgramKind::kBroadcast;
    default:
      return kind;
  }
}

bool Combines(ProgramKind kind) { return Dual(kind) != kind; }

absl::Status CheckRequest(const LinkGraph& graph, const SynthesisRequest& request) {
  const auto within = [](const char* name, int32_t value, int32_t least, int32_t most) {
    if (value >= least && value <= most) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", value, "; the search takes ", least, " to ", most, "."));
  };
  RETURN_IF_ERROR(within("steps", request.steps, 1, kMostSteps));
  RETURN_IF_ERROR(within("rounds", request.rounds, 1, kMostRounds));
  RETURN_IF_ERROR(within("chunks", request.chunks, 1, SynthesisRequest::kMostChunks));
  RETURN_IF_ERROR(within("root", request.root, 0, graph.nodes() - 1));
  if (request.kind == ProgramKind::kAllReduce && (request.steps % 2 + request.rounds % 2) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("all_reduce of ", request.steps, " steps and ", request.rounds,
                     " rounds: half of them scatter sums and half gather them, so both are even."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Synthesis> Synthesise(const LinkGraph& graph, const SynthesisRequest& request) {
  RETURN_IF_ERROR(CheckRequest(graph, request));
  const ProgramKind kind = request.kind;
  ASSIGN_OR_RETURN(const SynthesisProblem problem,
                   MakeProblem(Dual(kind), graph.nodes(), request.chunks, request.root));
  const int32_t halves = kind == ProgramKind::kAllReduce ? 2 : 1;
  Synthesis out;
  SearchResult collect, spread;
  const auto search = [&](const LinkGraph& links, SearchResult& result) -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(result, FindSchedule(links, problem, request.steps / halves,
                                          request.rounds / halves, request.conflicts));
    out.answer = result.answer;
    out.proof = result.proof;
    out.conflicts += result.conflicts;
    if (result.answer != SearchResult::Answer::kFound) return false;
    PLANCAST_CHECK_OK(VerifySchedule(links, problem, result.schedule));
    return true;
  };
  if (Combines(kind)) {
    ASSIGN_OR_RETURN(const bool found, search(graph.Reversed(), collect));
    if (!found) return out;
    collect.schedule = Inverted(collect.schedule);
    for (const auto& step : collect.schedule.steps) out.rounds.push_back(step.rounds);
  }
  const bool spreads = !Combines(kind) || kind == ProgramKind::kAllReduce;
  if (spreads) {
    ASSIGN_OR_RETURN(const bool found, search(graph, spread));
    if (!found) return out;
    for (const auto& step : spread.schedule.steps) out.rounds.push_back(step.rounds);
  }
  out.program =
      ProgramOf(graph, kind, request.root, problem, Combines(kind) ? &collect.schedule : nullptr,
                spreads ? &spread.schedule : nullptr);
  out.program.name = absl::StrCat("sccl_", kProgramKindNames[kind], "_s", request.steps, "_r",
                                  request.rounds, "_c", request.chunks);
  PLANCAST_CHECK_OK(CheckChunkProgram(out.program));
  return out;
}

absl::StatusOr<SynthesisBounds> BoundsOf(const LinkGraph& graph, ProgramKind kind, int32_t root) {
  if (root < 0 || root >= graph.nodes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("root is ", root, "; the nodes are 0 to ", graph.nodes() - 1, "."));
  }
  ASSIGN_OR_RETURN(const SynthesisProblem problem, MakeProblem(Dual(kind), graph.nodes(), 1, root));
  const LinkGraph reversed = graph.Reversed();
  const LinkGraph& first = Combines(kind) ? reversed : graph;
  SynthesisBounds out{StepsBound(first, problem), BoundRounds(first, problem)};
  if (kind == ProgramKind::kAllReduce) {
    // Its two halves; what other algorithms do is not bounded by this.
    const RoundsBound second = BoundRounds(graph, problem);
    const Ratio a = out.rounds.rounds_per_chunk, b = second.rounds_per_chunk;
    out.steps += StepsBound(graph, problem);
    out.rounds.rounds_per_chunk = Reduced(a.numerator * b.denominator + b.numerator * a.denominator,
                                          a.denominator * b.denominator);
    absl::StrAppend(&out.rounds.reason, "; then ", second.reason);
  }
  return out;
}

}  // namespace plancast
