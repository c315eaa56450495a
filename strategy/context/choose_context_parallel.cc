#include "strategy/context/choose_context_parallel.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/wrong.h"
#include "strategy/context_parallel.h"

namespace plancast {
absl::Status ChooseContextParallel(const ShortForm& form, const AttentionSizes& model,
                                   const SoftwareProfile& profile, PlanOptions* options,
                                   std::vector<std::string>* notes) {
  PlanOptions& o = *options;
  const auto note = [&](const std::string& text) {
    if (notes != nullptr) notes->push_back(text);
  };
  ContextParallel cp;
  cp.type = profile.context_parallel;
  if (form.cp_type.has_value()) {
    ASSIGN_OR_RETURN(cp, ContextParallel::Parse(*form.cp_type));
  }
  if (o.cp == 1) {
    if (form.cp_type.has_value())
      note(absl::StrCat("cp_type=", *form.cp_type, " has no effect with cp=1"));
    return absl::OkStatus();
  }
  const std::string said = absl::StrCat("cp=", o.cp);
  if (!model.has_sequence) {
    return Wrong(said, " cuts the sequence, and the model has none. Leave cp out.");
  }
  if (cp.type == CpType::kHybrid && o.cp % cp.head_ranks != 0) {
    return Wrong("cp_type=", cp.DebugString(), " cuts heads over ", cp.head_ranks, " of the ", said,
                 " ranks, which do not divide. Use a divisor of ", o.cp, ".");
  }
  // All heads over the whole axis, or over none of it.
  if (cp.type == CpType::kHybrid && cp.head_ranks == o.cp) cp = {CpType::kUlysses, 0};
  if (cp.type == CpType::kHybrid && cp.head_ranks == 1) cp = {CpType::kRingZigzag, 0};
  const int64_t head_ranks = cp.HeadRanks(o.cp);
  if (model.heads > 0 && model.heads % (o.tp * head_ranks) != 0) {
    return Wrong("cp_type=", cp.DebugString(), " cuts the ", model.heads, " attention heads over ",
                 head_ranks, " ranks of cp and ", o.tp, " of tp, which does not divide them. ",
                 "Use cp_type=ring_zigzag or allgather, which leave heads whole, or a smaller cp.");
  }
  const int64_t pieces = (cp.mirrored() ? 2 : 1) * o.cp * (o.sp ? o.tp : 1);
  if (model.seq > 0 && model.seq % pieces != 0) {
    return Wrong(said, o.sp ? absl::StrCat(" with sp and tp=", o.tp) : "",
                 " and cp_type=", cp.DebugString(), " cut the sequence of ", model.seq,
                 " tokens in ", pieces, " pieces, which does not divide it. Use a multiple of ",
                 pieces, cp.mirrored() ? ", or cp_type=ring, which takes half as many." : ".");
  }
  o.cp_type = cp.type;
  o.cp_head_ranks = cp.head_ranks;
  return absl::OkStatus();
}

std::string IdleContextOverlap(const PlanOptions& options, const SoftwareProfile& profile) {
  if (options.cp == 1) return " with cp=1";
  const ContextParallel cp{options.cp_type, options.cp_head_ranks};
  if (!cp.turns()) {
    return absl::StrCat(" with cp_type=", cp.DebugString(),
                        ": only rings have steps to run beside");
  }
  if (!profile.kernels.context_steps.waits) {
    return absl::StrCat(": steps of a ring run beside what it sends in ", profile.name, " anyway");
  }
  return "";
}

}  // namespace plancast
