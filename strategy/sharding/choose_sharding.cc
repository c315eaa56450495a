#include "strategy/sharding/choose_sharding.h"

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/divisors.h"
#include "base/status_macros.h"
#include "base/wrong.h"
#include "strategy/plan_names.h"

namespace plancast {
namespace {

class Chooser {
 public:
  Chooser(const ShortForm& form, const NodeSharding& nodes, const SoftwareProfile& profile,
          PlanOptions* options, std::vector<std::string>* notes)
      : form_(form),
        nodes_(nodes),
        profile_(profile),
        usual_(profile.data_parallel),
        o_(*options),
        notes_(notes) {}

  absl::Status Choose() {
    ChooseZero();
    RETURN_IF_ERROR(ChooseGroups());
    RETURN_IF_ERROR(ChooseGathers());
    RETURN_IF_ERROR(ChooseUnit());
    o_.sync_each =
        form_.sync.has_value()
            ? form_.sync == "each"
            : o_.most_zero() >= 2 && (o_.pp > 1 ? usual_.pipelines_sync_each : usual_.sync_each);
    const bool alone = o_.dp * o_.cp == 1;  // nothing is sharded
    o_.sync_whole_each = form_.sync == "each" || (alone && o_.sync_each);
    if (form_.sync.has_value() && o_.micro_batches == 1) {
      Note("sync=", *form_.sync, " has no effect with one micro-batch");
    }
    return ChooseOffload();
  }

 private:
  template <typename... Parts>
  void Note(const Parts&... parts) {
    if (notes_ != nullptr) notes_->push_back(absl::StrCat(parts...));
  }

  void ChooseZero() {
    o_.zero = static_cast<int>(form_.zero.value_or(0));
    // FSDP has no other way to shard gradients and state alone (SHARD_GRAD_OP).
    kept_ = o_.zero == 2 && HasOwnStreams(usual_.shard_cut);
    if (kept_) {
      o_.zero = 3;
      Note("zero=2 is zero=3,reshard=off in `", profile_.name,
           "`, which gathers whole units and keeps them for their backward pass");
    }
    o_.node_zero = nodes_.zero;
    if (o_.zero == 0 && nodes_.axes.count("dp") > 0 && o_.dp * o_.cp == 1) {
      Note("homes sharded over dp have no effect with dp=1");
    }
    const std::pair<const char*, int64_t> others[] = {
        {"tp", o_.tp}, {"cp", o_.cp}, {"ep", o_.ep}, {"etp", o_.expert_tp()}};
    for (const auto& [axis, size] : others) {
      if (nodes_.axes.count(axis) == 0 || size > 1) continue;
      Note("homes sharded over ", axis, " have no effect with ", axis, "=1");
    }
    if (o_.zero > 0 && o_.dp * o_.cp == 1) Note("zero=", o_.zero, " has no effect with dp=1");
  }

  absl::Status ChooseGroups() {
    if (!form_.hsdp.has_value()) return absl::OkStatus();
    if (o_.dp % *form_.hsdp != 0) {
      return Wrong("hsdp=", *form_.hsdp, " ranks of a shard group do not divide dp=", o_.dp,
                   ". Sizes that work: ", Divisors(o_.dp), ".");
    }
    if (o_.most_zero() == 0) Note("hsdp=", *form_.hsdp, " has no effect with zero=0");
    if (o_.most_zero() > 0 && *form_.hsdp < o_.dp) o_.hsdp = *form_.hsdp;
    return absl::OkStatus();
  }

  absl::Status ChooseGathers() {
    o_.reshard = !kept_ && (o_.pp > 1 ? usual_.pipelines_reshard : usual_.reshard);
    const bool gathers = o_.most_zero() == 3;
    if (form_.reshard.has_value() && (!gathers || kept_)) {
      Note("reshard=", *form_.reshard, " has no effect with zero=", kept_ ? 2 : o_.zero);
    } else if (form_.reshard.has_value()) {
      o_.reshard = form_.reshard != "off";
      int64_t ranks = 0;
      if (absl::SimpleAtoi(*form_.reshard, &ranks) && ranks != o_.shard_ranks()) {
        if (o_.shard_ranks() % ranks != 0) {
          return Wrong("reshard=", ranks, " does not divide the ", o_.shard_ranks(),
                       " ranks of a shard group. Sizes that work: ", Divisors(o_.shard_ranks()),
                       ".");
        }
        o_.reshard_ranks = ranks;
      }
    }
    o_.prefetch = form_.prefetch.value_or(1);
    if (form_.prefetch.has_value() && !gathers) {
      Note("prefetch=", o_.prefetch, " has no effect with zero=", o_.zero);
    }
    return absl::OkStatus();
  }

  absl::Status ChooseUnit() {
    o_.unit_layers = form_.unit.value_or(1);
    if (!form_.unit.has_value()) return absl::OkStatus();
    const bool shards = o_.most_zero() >= 2;
    if (o_.unit_layers > 1 && !shards) {
      return Wrong("unit=", o_.unit_layers, " joins layers whose weights or gradients are sharded,",
                   " and zero=", o_.zero,
                   " shards neither. Use zero=2 or zero=3, or leave `unit` out.");
    }
    if (!shards || (o_.node_zero < 2 && o_.dp * o_.cp == 1)) {
      Note("unit=", o_.unit_layers, " has no effect with ",
           shards ? "dp=1" : absl::StrCat("zero=", o_.zero));
    }
    return absl::OkStatus();
  }

  absl::Status ChooseOffload() {
    for (const std::string& word : form_.offload) o_.offload.insert(*kOffloadNames.Find(word));
    o_.offload_layers = form_.offload_layers.value_or(-1);
    if (o_.offload.count(Offload::kParameters) > 0 && o_.zero < 3) {
      return Wrong("offload=param keeps shards of parameters in the host's memory, and zero=",
                   o_.zero, " does not shard them. Use zero=3, or leave `param` out.");
    }
    if (o_.unit_layers > 1 && o_.offload.count(Offload::kActivations) > 0) {
      return absl::UnimplementedError(absl::StrCat(
          "not supported yet: unit=", o_.unit_layers, " with offload=activations, ",
          "which copies what single layers keep. Use unit=1, or leave the offload out."));
    }
    return absl::OkStatus();
  }

  const ShortForm& form_;
  const NodeSharding& nodes_;
  const SoftwareProfile& profile_;
  const SoftwareProfile::DataParallel& usual_;
  PlanOptions& o_;
  std::vector<std::string>* const notes_;
  bool kept_ = false;  // zero=2 of FSDP
};

}  // namespace

absl::Status ChooseSharding(const ShortForm& form, const NodeSharding& nodes,
                            const SoftwareProfile& profile, PlanOptions* options,
                            std::vector<std::string>* notes) {
  return Chooser(form, nodes, profile, options, notes).Choose();
}

}  // namespace plancast
