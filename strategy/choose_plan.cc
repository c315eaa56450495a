#include "strategy/choose_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/divisors.h"
#include "base/int128.h"
#include "base/status_macros.h"
#include "base/wrong.h"
#include "strategy/byte_size.h"
#include "strategy/context/choose_context_parallel.h"
#include "strategy/plan_names.h"
#include "strategy/recompute/choose_recompute.h"
#include "strategy/schedule/choose_buckets.h"
#include "strategy/schedule/choose_schedule.h"
#include "strategy/schedule/choose_step_time.h"
#include "strategy/schedule/choose_vocabulary.h"
#include "strategy/schedule/plan_conflicts.h"
#include "strategy/schedule/schedule_word.h"
#include "strategy/sharding/choose_sharding.h"

namespace plancast {
namespace {

// Of micro-batches through chunks of stages: programs take some 1.2 kB for each.
constexpr int64_t kMostPasses = int64_t{1} << 18;

std::string TypeText(DType type) { return std::string(DTypeName(type)); }

// Fills `plan` step by step; each step reads what the earlier ones settled.
class Chooser {
 public:
  // `texts`: notes and `chosen` too.
  Chooser(const ShortForm& form, const PlanContext& context, const SoftwareProfile& profile,
          bool texts)
      : form_(form), context_(context), profile_(profile), texts_(texts) {}

  absl::StatusOr<ChosenPlan> Choose() {
    RETURN_IF_ERROR(CheckSupported(form_));
    RETURN_IF_ERROR(ChooseMesh());
    RETURN_IF_ERROR(CheckTensorParallel());
    const bool has_sequence = context_.seq > 0 || !context_.stage_dims.empty();
    RETURN_IF_ERROR(ChooseContextParallel(form_, {context_.heads, context_.seq, has_sequence},
                                          profile_, &o_, texts_ ? &plan_.notes : nullptr));
    RETURN_IF_ERROR(ChooseExpertParallel());
    RETURN_IF_ERROR(ChooseMicroBatches());
    RETURN_IF_ERROR(ChooseSchedule(form_, profile_, &o_, texts_ ? &plan_.notes : nullptr));
    RETURN_IF_ERROR(ChooseLayout());
    RETURN_IF_ERROR(CheckPasses());
    RETURN_IF_ERROR(ChooseSharding(form_, {context_.node_zero, context_.home_axes}, profile_, &o_,
                                   texts_ ? &plan_.notes : nullptr));
    RETURN_IF_ERROR(ChooseRecompute(form_, profile_, &o_));
    NoteWholeStages();
    ChooseRest();
    RETURN_IF_ERROR(ChooseStepTime(form_, profile_, &o_, texts_ ? &plan_.notes : nullptr));
    RETURN_IF_ERROR(ChooseBuckets(form_, profile_, &o_, texts_ ? &plan_.notes : nullptr));
    RETURN_IF_ERROR(ChooseVocabulary(form_, context_.vocab, &o_, texts_ ? &plan_.notes : nullptr));
    RETURN_IF_ERROR(CheckConflicts(o_, profile_));
    if (texts_) Report();
    return std::move(plan_);
  }

 private:
  template <typename... Parts>
  void Note(const Parts&... parts) {
    if (texts_) plan_.notes.push_back(absl::StrCat(parts...));
  }

  absl::Status ChooseMesh();
  absl::Status CheckTensorParallel();
  absl::Status ChooseExpertParallel();
  absl::Status ChooseMicroBatches();
  absl::Status ChooseLayout();
  absl::Status CheckPasses() const;
  void NoteWholeStages();
  void ChooseRest();
  void Report();

  const ShortForm& form_;
  const PlanContext& context_;
  const SoftwareProfile& profile_;
  const bool texts_;
  ChosenPlan plan_;
  PlanOptions& o_ = plan_.options;
};

absl::Status Chooser::ChooseMesh() {
  o_.tp = form_.tp.value_or(1);
  o_.pp = form_.pp.value_or(1);
  o_.cp = form_.cp.value_or(1);
  const int64_t devices = context_.devices;
  if (devices < 1)
    return Wrong("the machine has ", devices, " devices; a plan needs one at least.");
  const int128 model_parallel = int128{o_.tp} * o_.pp * o_.cp;
  if (devices % model_parallel != 0) {
    const int64_t pipelines = devices % o_.tp == 0 ? devices / o_.tp : 0;
    const std::string cp = o_.cp > 1 ? absl::StrCat(" times cp=", o_.cp) : "";
    if (o_.cp > 1 && devices % (int128{o_.tp} * o_.pp) == 0) {
      return Wrong("tp=", o_.tp, " times pp=", o_.pp, cp, " does not divide the ", devices,
                   " devices of the machine. With tp=", o_.tp, " and pp=", o_.pp, ", cp can be ",
                   Divisors(static_cast<int64_t>(devices / (int128{o_.tp} * o_.pp))), ".");
    }
    return Wrong("tp=", o_.tp, " times pp=", o_.pp, cp, " does not divide the ", devices,
                 " devices of the machine. ",
                 pipelines > 0
                     ? absl::StrCat("With tp=", o_.tp, ", pp can be ", Divisors(pipelines), ".")
                     : absl::StrCat("tp can be ", Divisors(devices), "."));
  }
  const auto derived = static_cast<int64_t>(devices / model_parallel);
  o_.dp = form_.dp.value_or(derived);
  if (o_.dp != derived) {
    const std::string cp = o_.cp > 1 ? absl::StrCat(", cp=", o_.cp) : "";
    return Wrong("dp=", o_.dp, ", tp=", o_.tp, ", pp=", o_.pp, cp, " do not multiply to the ",
                 devices, " devices of the machine. With this tp and pp, dp is ", derived,
                 "; leave dp out to have it derived.");
  }
  if (form_.order.empty()) return absl::OkStatus();
  o_.order = form_.order;
  // An axis of one rank can stand anywhere.
  for (const char* axis : {"tp", "cp", "ep", "dp", "pp"}) {
    if (std::find(o_.order.begin(), o_.order.end(), axis) == o_.order.end()) {
      o_.order.push_back(axis);
    }
  }
  return absl::OkStatus();
}

absl::Status Chooser::CheckTensorParallel() {
  const int64_t heads = context_.heads, ffn = context_.ffn;
  const int64_t kv_heads = context_.kv_heads > 0 ? context_.kv_heads : heads;
  const auto kv_works = [&](int64_t tp) {
    return kv_heads == 0 || kv_heads % tp == 0 || tp % kv_heads == 0;
  };
  const auto works = [&](int64_t tp) {
    return (heads == 0 || heads % tp == 0) && (ffn == 0 || ffn % tp == 0) && kv_works(tp);
  };
  const auto sizes = [&] {
    return absl::StrCat(
        " Sizes that work: ", Divisors(heads > 0 ? heads : std::max<int64_t>(ffn, 1), works), ".");
  };
  if (heads > 0 && heads % o_.tp != 0) {
    return Wrong("tp=", o_.tp, " does not divide the ", heads, " attention heads.", sizes());
  }
  if (!kv_works(o_.tp)) {
    return Wrong("tp=", o_.tp, " and the ", kv_heads,
                 " key/value heads: neither divides the other.", sizes());
  }
  if (ffn > 0 && ffn % o_.tp != 0) {
    return Wrong("tp=", o_.tp, " does not divide the feed-forward size ", ffn, ".", sizes());
  }
  o_.sp = form_.sp && o_.tp > 1;
  if (form_.sp && o_.tp == 1) Note("sp has no effect with tp=1");
  if (o_.sp && context_.seq > 0 && context_.seq % o_.tp != 0) {
    return Wrong("sp splits the sequence of ", context_.seq, " tokens over tp=", o_.tp,
                 ", which does not divide it. Sizes that work: ", Divisors(context_.seq, works),
                 ".");
  }
  if (kv_heads > 0 && o_.tp > kv_heads) {
    Note("the ", kv_heads, " key/value heads are replicated ", o_.tp / kv_heads,
         " times over tp=", o_.tp);
  }
  return absl::OkStatus();
}

absl::Status Chooser::ChooseExpertParallel() {
  o_.ep = form_.ep.value_or(1);
  o_.etp = form_.etp.value_or(o_.tp);
  if (context_.experts == 0) {
    if (o_.ep > 1) {
      return Wrong("ep=", o_.ep, " splits experts, and the model has none. Leave ep out.");
    }
    if (o_.etp != o_.tp) {
      return Wrong("etp=", o_.etp, " splits experts, and the model has none. Leave etp out.");
    }
    return absl::OkStatus();
  }
  if (context_.experts % o_.ep != 0) {
    return Wrong("ep=", o_.ep, " does not divide the ", context_.experts,
                 " experts. Sizes that work: ", Divisors(context_.experts), ".");
  }
  if (context_.expert_ffn > 0 && context_.expert_ffn % o_.etp != 0) {
    return Wrong("etp=", o_.etp, " does not divide the feed-forward size of an expert, ",
                 context_.expert_ffn, ". Sizes that work: ", Divisors(context_.expert_ffn), ".");
  }
  const int64_t stage = o_.dp * o_.cp * o_.tp;
  if (stage % o_.etp != 0) {
    return Wrong("etp=", o_.etp, " does not divide the dp*cp*tp = ", o_.dp, "*", o_.cp, "*", o_.tp,
                 " ranks of a stage. Sizes that work: ", Divisors(stage), ".");
  }
  const int64_t rest = stage / o_.etp;
  // The expert mesh is cut out of tp first, then cp, then dp, at places that nest.
  const auto nests = [&](int64_t ranks) {
    for (const int64_t inner : {o_.tp, o_.tp * o_.cp}) {
      if (ranks % inner != 0 && inner % ranks != 0) return false;
    }
    return true;
  };
  const auto works = [&](int64_t ep) {
    return rest % ep == 0 && context_.experts % ep == 0 && nests(ep * o_.etp);
  };
  if (!nests(o_.etp)) {
    return Wrong("etp=", o_.etp, " and tp=", o_.tp,
                 ": neither divides the other. Sizes that work: ", Divisors(o_.tp), ".");
  }
  if (rest % o_.ep == 0 && !nests(o_.ep * o_.etp)) {
    return Wrong("ep=", o_.ep, " times etp=", o_.etp, " and tp=", o_.tp,
                 ": neither divides the other. With etp=", o_.etp, ", ep can be ",
                 Divisors(rest, works), ".");
  }
  if (!works(o_.ep)) {
    return Wrong("ep=", o_.ep, " times etp=", o_.etp, " does not divide the dp*cp*tp = ", o_.dp,
                 "*", o_.cp, "*", o_.tp, " ranks of a stage. With etp=", o_.etp, ", ep can be ",
                 Divisors(rest, works), ".");
  }
  if (o_.ep > 1 && o_.tp > 1 && !o_.sp) {
    Note("without sp every rank of tp routes all tokens");
  }
  return absl::OkStatus();
}

absl::Status Chooser::ChooseMicroBatches() {
  o_.micro_batch = form_.mb.value_or(1);
  const int128 step = int128{o_.dp} * o_.micro_batch;  // samples of one micro-batch on all ranks
  if (!context_.global_batch.has_value()) {
    o_.micro_batches = form_.accum.value_or(1);
    if (!form_.accum.has_value()) Note("neither batch nor accum is given: one micro-batch");
    return absl::OkStatus();
  }
  const int64_t batch = *context_.global_batch;
  if (batch < 1) return Wrong("the batch is ", batch, "; it must be 1 at least.");
  if (batch % step != 0) {
    if (batch % o_.dp == 0) {
      return Wrong("the batch of ", batch, " is not divisible by dp*mb = ", o_.dp, "*",
                   o_.micro_batch, ". With dp=", o_.dp, ", mb can be ", Divisors(batch / o_.dp),
                   ".");
    }
    return Wrong("the batch of ", batch, " is not divisible by dp*mb = ", o_.dp, "*",
                 o_.micro_batch, ". No mb works with dp=", o_.dp, ": dp must be a divisor of ",
                 batch, ", or the batch a multiple of ", o_.dp, ".");
  }
  o_.micro_batches = static_cast<int64_t>(batch / step);
  if (form_.accum.has_value() && *form_.accum != o_.micro_batches) {
    return Wrong("accum=", *form_.accum, " contradicts the batch: ", batch, " / (dp=", o_.dp,
                 " * mb=", o_.micro_batch, ") is ", o_.micro_batches,
                 ". Leave accum out to have it derived.");
  }
  return absl::OkStatus();
}

absl::Status Chooser::ChooseLayout() {
  ASSIGN_OR_RETURN(const std::string note, plancast::ChooseLayout(form_, context_, &o_));
  if (!note.empty()) Note(note);
  return absl::OkStatus();
}

absl::Status Chooser::CheckPasses() const {
  const int128 passes = int128{o_.micro_batches} * o_.pp * o_.vpp;
  if (passes <= kMostPasses) return absl::OkStatus();
  return Wrong("each rank runs ", o_.micro_batches, " micro-batches (pp=", o_.pp, ", vpp=", o_.vpp,
               "); micro-batches times pp times vpp can be ", kMostPasses,
               " at most. Take a larger mb, more dp or a smaller batch.");
}

void Chooser::NoteWholeStages() {
  if (o_.recompute_layers < 0 || o_.layout.empty()) return;
  int64_t largest = 0;
  for (int64_t stage = 0; stage < o_.pp; ++stage) {
    int64_t layers = 0;
    for (size_t i = stage; i < o_.layout.size(); i += o_.pp) layers += o_.layout[i];
    largest = std::max(largest, layers);
  }
  if (o_.recompute_layers < largest) return;
  Note("recompute=full:", o_.recompute_layers, " is all layers of every stage");
}

void Chooser::ChooseRest() {
  o_.attention =
      form_.attn.has_value() ? *kAttentionNames.Find(*form_.attn) : profile_.kernels.attention;
  if (profile_.types.attention_dtype.has_value() && o_.attention != Attention::kFlash) {
    Note("attention_dtype has no effect: attention is not fused (attn=flash)");
  }
  if (form_.overlap.empty()) {
    o_.overlap = profile_.data_parallel.overlap;
  } else {
    for (const std::string& word : form_.overlap) {
      if (const auto overlap = kOverlapNames.Find(word)) o_.overlap.insert(*overlap);
    }
  }
  if (o_.overlap.count(Overlap::kTp) > 0 && o_.tp > 1 && !o_.sp) {
    Note("overlap=tp has no effect without sp: it cuts gathers and scatters of the sequence");
  }
  if (o_.overlap.count(Overlap::kParam) > 0 && o_.most_zero() == 0) {
    if (!form_.overlap.empty()) Note("overlap=param has no effect with zero=0");
    o_.overlap.erase(Overlap::kParam);
  }
  if (o_.overlap.count(Overlap::kEp) > 0 && (o_.ep == 1 || o_.micro_batches == 1)) {
    Note("overlap=ep has no effect with ",
         o_.ep == 1 ? "ep=1: it hides exchanges of tokens between ranks"
                    : "one micro-batch: it hides exchanges of one beside work on another");
    o_.overlap.erase(Overlap::kEp);
  } else if (o_.overlap.count(Overlap::kEp) > 0 && o_.pp > 1 && o_.schedule == Schedule::k1f1b) {
    Note(
        "with overlap=ep stages wait for each other's pairs under schedule=1f1b: eager-1f1b runs "
        "enough passes ahead, and so does vpp=2");
  }
  if (o_.overlap.count(Overlap::kCp) > 0) {
    const std::string idle = IdleContextOverlap(o_, profile_);
    if (!idle.empty()) {
      if (!form_.overlap.empty()) Note("overlap=cp has no effect", idle);
      o_.overlap.erase(Overlap::kCp);
    }
  }
}

void Chooser::Report() {
  const auto yes_no = [](bool value) { return value ? "1" : "0"; };
  auto& chosen = plan_.chosen;
  chosen["dp"] = absl::StrCat(o_.dp);
  chosen["tp"] = absl::StrCat(o_.tp);
  chosen["sp"] = yes_no(o_.sp);
  if (context_.experts > 0) {
    chosen["ep"] = absl::StrCat(o_.ep);
    chosen["etp"] = absl::StrCat(o_.etp);
  }
  chosen["pp"] = absl::StrCat(o_.pp);
  chosen["vpp"] = absl::StrCat(o_.vpp);
  if (o_.cp > 1) {
    chosen["cp"] = absl::StrCat(o_.cp);
    chosen["cp_type"] = ContextParallel{o_.cp_type, o_.cp_head_ranks}.DebugString();
  }
  chosen["zero"] = absl::StrCat(o_.zero);
  chosen["mb"] = absl::StrCat(o_.micro_batch);
  chosen["accum"] = absl::StrCat(o_.micro_batches);
  if (o_.most_zero() > 0) {
    chosen["hsdp"] = absl::StrCat(o_.hsdp == 0 ? o_.dp : o_.hsdp);
    chosen["sync"] = o_.sync_each ? "each" : "last";
  }
  if (o_.most_zero() >= 2) chosen["unit"] = absl::StrCat(o_.unit_layers);
  if (o_.most_zero() == 3) {
    chosen["reshard"] =
        o_.reshard_ranks > 0 ? absl::StrCat(o_.reshard_ranks) : (o_.reshard ? "on" : "off");
    chosen["prefetch"] = absl::StrCat(o_.prefetch);
  }
  chosen["recompute"] = RecomputeText(o_);
  if (!o_.offload.empty()) {
    chosen["offload"] = o_.offload_layers < 0
                            ? OffloadText(o_.offload)
                            : absl::StrCat(OffloadText(o_.offload), ":", o_.offload_layers);
  }
  chosen["schedule"] = PrintScheduleWord({o_.schedule, o_.search_memory, o_.most_ongoing});
  chosen["attn"] = std::string(kAttentionNames[o_.attention]);
  chosen["overlap"] = OverlapText(o_.overlap);
  chosen["bucket"] = PrintByteSize(o_.bucket_bytes);
  if (o_.first_bucket_bytes > 0) chosen["first_bucket"] = PrintByteSize(o_.first_bucket_bytes);
  if (o_.spreads_vocabulary()) {
    chosen["vocab_parallel"] = std::string(kVocabParallelNames[o_.vocab_parallel]);
  }
  chosen["optimizer"] = std::string(kStepTimeNames[o_.optimizer]);
  if (!o_.layout.empty()) chosen["layout"] = PrintLayout(o_.layout);
  chosen["order"] = absl::StrJoin(o_.order, "-");
  chosen["profile"] = profile_.name;
  chosen["cuda_graphs"] = yes_no(profile_.host.cuda_graphs);
  const auto& types = profile_.types;
  chosen["grad_dtype"] = TypeText(types.grad_dtype);
  chosen["reduce_dtype"] = TypeText(types.reduce_dtype);
  chosen["main_grad_dtype"] = TypeText(types.main_grad_dtype.value_or(types.grad_dtype));
  chosen["param_dtype"] = TypeText(types.param_dtype);
  chosen["gather_dtype"] = TypeText(types.gather_dtype.value_or(types.param_dtype));
  if (types.attention_dtype.has_value()) {
    chosen["attention_dtype"] = TypeText(*types.attention_dtype);
  }
  chosen["optimizer_type"] = std::string(kOptimizerTypeNames[profile_.update.type]);
  if (const int moments = Moments(profile_.update.type); moments > 0) {
    const DType first = types.state_dtype, second = profile_.SecondStateType();
    chosen["state_dtype"] = TypeText(first);
    if (moments > 1 && second != first) chosen["state_dtype"] += "+" + TypeText(second);
  }
  const bool typed = types.master_weights && types.master_dtype != DType::kFp32;
  chosen["master"] = typed ? TypeText(types.master_dtype) : yes_no(types.master_weights);
  if (context_.vocab > 0) {
    chosen["vocab"] = absl::StrCat(profile_.PaddedVocab(context_.vocab, o_.tp));
  }
}

}  // namespace

absl::StatusOr<ChosenPlan> ChoosePlan(const ShortForm& form, const PlanContext& context,
                                      const SoftwareProfile& profile) {
  return Chooser(form, context, profile, /*texts=*/true).Choose();
}

absl::StatusOr<PlanOptions> ChooseOptions(const ShortForm& form, const PlanContext& context,
                                          const SoftwareProfile& profile) {
  ASSIGN_OR_RETURN(ChosenPlan plan, Chooser(form, context, profile, /*texts=*/false).Choose());
  return std::move(plan.options);
}

}  // namespace plancast
