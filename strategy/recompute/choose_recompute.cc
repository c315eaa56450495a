#include "strategy/recompute/choose_recompute.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "strategy/plan_names.h"
#include "strategy/recompute/recompute_set.h"

namespace plancast {
namespace {

// Layers that run again together are one module, which is sharded together or not at all, and not
// offloaded layer by layer.
absl::Status CheckJoinedLayers(const PlanOptions& o) {
  const std::string words = absl::StrCat("recompute=uniform:", o.recompute_joined);
  const bool shards = (o.zero >= 2 && o.dp * o.cp > 1) || o.node_zero >= 2;
  if (shards && o.unit_layers != o.recompute_joined) {
    return absl::InvalidArgumentError(absl::StrCat(
        words, " recomputes layers together, and zero=", o.most_zero(), " shards them ",
        o.unit_layers == 1 ? "one by one" : absl::StrCat("by ", o.unit_layers),
        ". Use unit=", o.recompute_joined, ", recompute=full or every:N, or zero=1."));
  }
  if (o.offload.count(Offload::kActivations) > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(words, " recomputes layers together, and offload=activations copies what ",
                     "each of them keeps. Use recompute=full or every:N, or leave the offload "
                     "out."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ChooseRecompute(const ShortForm& form, const SoftwareProfile& profile,
                             PlanOptions* options) {
  PlanOptions& o = *options;
  o.recompute_ops = form.recompute_ops.empty() ? profile.recompute.selective : form.recompute_ops;
  o.norms_in_products = profile.recompute.norms_in_products;
  for (const std::string& word : o.recompute_ops) {
    RETURN_IF_ERROR(FindRecomputeSet(word).status());
  }
  if (!form.recompute.has_value()) return absl::OkStatus();
  const bool every = form.recompute == "every", uniform = form.recompute == "uniform";
  o.recompute = every || uniform ? Recompute::kFull : *kRecomputeNames.Find(*form.recompute);
  if (every) {
    o.recompute_every = *form.recompute_layers;
  } else if (uniform) {
    o.recompute_joined = *form.recompute_layers;
    if (o.recompute_joined > 1) return CheckJoinedLayers(o);
  } else {
    o.recompute_layers = form.recompute_layers.value_or(-1);
  }
  return absl::OkStatus();
}

std::string RecomputeText(const PlanOptions& options) {
  if (options.recompute == Recompute::kSelective) {
    // Plain `selective` of Megatron's is known by that name.
    const bool plain = options.recompute_ops == std::vector<std::string>{"core_attn"};
    return PrintRecompute(options.recompute,
                          plain ? std::vector<std::string>() : options.recompute_ops);
  }
  if (options.recompute_every > 0) return absl::StrCat("every:", options.recompute_every);
  if (options.recompute_joined > 1) return absl::StrCat("uniform:", options.recompute_joined);
  const std::string name(kRecomputeNames[options.recompute]);
  return options.recompute_layers < 0 ? name : absl::StrCat(name, ":", options.recompute_layers);
}

}  // namespace plancast
