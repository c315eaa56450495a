#include "strategy/software_profile.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/embedded_file.h"
#include "base/suggest.h"
#include "strategy/software_profiles.h"

namespace plancast {
namespace {

std::string OpMemoryKey(const SoftwareProfile::OpMemory& memory) {
  std::string key =
      absl::StrCat(absl::StrJoin(memory.drops, "+"), "|", absl::StrJoin(memory.holds, "+"));
  for (const auto* tensors : {&memory.keeps, &memory.forward, &memory.backward, &memory.held}) {
    absl::StrAppend(&key, "|");
    for (const SoftwareProfile::ExtraTensor& t : *tensors) {
      absl::StrAppend(&key, t.name, ":", t.like, ":", t.element_bytes, ":", t.min_samples, ":",
                      t.shared, t.early, t.each_sample, t.gathered, ";");
    }
  }
  return key;
}

}  // namespace

int64_t SoftwareProfile::PaddedVocab(int64_t vocab, int64_t tp) const {
  const int64_t multiple = vocab_pad_multiple * tp;
  if (multiple <= 1) return vocab;
  return (vocab + multiple - 1) / multiple * multiple;
}

std::string SoftwareProfile::StructureKey() const {
  if (!settled_key.empty()) return settled_key;
  const auto types = {grad_dtype,
                      reduce_dtype,
                      main_grad_dtype.value_or(grad_dtype),
                      param_dtype,
                      gather_dtype.value_or(param_dtype),
                      master_dtype,
                      state_dtype,
                      SecondStateType()};
  const auto flags = {master_weights,
                      grad_clip,
                      fp16_overflow_check,
                      zero_grad,
                      fresh_gradients,
                      fuse_wgrad_accumulation,
                      wgrad_overlaps_tp,
                      sp_saves_sharded,
                      p2p_scatter_gather,
                      p2p_blocking,
                      p2p_host_sync,
                      reduce_last_micro_batch_only,
                      dropout,
                      bf16_gradients_in_fp32,
                      interleaved_p2p_overlaps,
                      quantized_activations,
                      quantized_gathers,
                      reduces_each_product,
                      first_dim_collectives,
                      repeats_kv,
                      foreach_optimizer,
                      replays_only_needed,
                      keeps_unread,
                      experts_weigh_activations,
                      experts_sort_tokens,
                      dispatch_sends_once,
                      sharded_master,
                      root_unit,
                      keeps_last_unit};
  const auto number = [](std::string* out, auto value) {
    absl::StrAppend(out, static_cast<int>(value));
  };
  return absl::StrCat(
      name, " fuses ", absl::StrJoin(fusions, ","), "+", absl::StrJoin(fusions_16bit, ","),
      " eager ", absl::StrJoin(eager, ","), " apart ", absl::StrJoin(separate_products, ","),
      " attention ", static_cast<int>(default_attention), "/", attention_kernel, " vocab ",
      vocab_pad_multiple, " types ", absl::StrJoin(types, ",", number), precision.DebugString(),
      " flags ", absl::StrJoin(flags, "", number), " overlaps ",
      absl::StrJoin(default_overlap, ",", number), " bucket ", bucket_bytes, " offloads ",
      offload_least_bytes, " 16 bits ", absl::StrJoin(unquantized, ","), " selective ",
      absl::StrJoin(selective_recompute, "+"), " shards ", static_cast<int>(shard_cut), " around ",
      absl::StrJoin(around, ",",
                    [&](std::string* out, const auto& entry) {
                      const Around& a = entry.second;
                      absl::StrAppend(out, entry.first, " ", a.forward_passes, " ",
                                      a.backward_passes, " ", a.fp32, " ", a.forward_casts, " ",
                                      a.backward_casts, " ", a.metrics);
                    }),
      " memory ",
      absl::StrJoin(op_memory, ",",
                    [](std::string* out, const auto& entry) {
                      absl::StrAppend(out, entry.first, " ", OpMemoryKey(entry.second));
                    }),
      " whole ", absl::StrJoin(whole_rules, ","), " workspaces ", workspace_bytes);
}

bool SoftwareProfile::Quantizes(absl::string_view name) const {
  const size_t dot = name.rfind('.');
  if (dot != absl::string_view::npos) name.remove_prefix(dot + 1);
  return unquantized.count(std::string(name)) == 0;
}

DType SoftwareProfile::ParamType(DType dtype) const {
  return param_dtype == DType::kCompute ? StorageType(dtype) : param_dtype;
}

DType SoftwareProfile::GatherType(DType dtype) const {
  const DType type = gather_dtype.value_or(ParamType(dtype));
  return type == DType::kCompute ? StorageType(dtype) : type;
}

std::optional<DType> SoftwareProfile::MasterType(DType dtype) const {
  if (!master_weights || ParamType(dtype) == DType::kFp32) return std::nullopt;
  return master_dtype;
}

SoftwareProfile SoftwareProfile::For(DType dtype, Schedule schedule) const {
  SoftwareProfile settled = *this;
  settled.settled_key.clear();
  const auto settle = [dtype](DType* type) {
    if (*type == DType::kCompute) *type = StorageType(dtype);
  };
  for (DType* type : {&settled.grad_dtype, &settled.reduce_dtype, &settled.param_dtype,
                      &settled.master_dtype, &settled.state_dtype}) {
    settle(type);
  }
  for (std::optional<DType>* type :
       {&settled.main_grad_dtype, &settled.gather_dtype, &settled.second_state_dtype}) {
    if (type->has_value()) settle(&**type);
  }
  if (bf16_gradients_in_fp32 && StorageType(dtype) == DType::kBf16) {
    settled.grad_dtype = settled.reduce_dtype = DType::kFp32;
  }
  settled.bf16_gradients_in_fp32 = false;
  const auto take = [](std::optional<DType> asked, auto* type) {
    if (asked.has_value()) *type = *asked;
  };
  take(precision.grad, &settled.grad_dtype);
  take(precision.main_grad, &settled.main_grad_dtype);
  take(precision.reduce, &settled.reduce_dtype);
  take(precision.gather, &settled.gather_dtype);
  take(precision.param, &settled.param_dtype);
  take(precision.master, &settled.master_dtype);
  take(precision.state, &settled.state_dtype);
  if (precision.state.has_value()) settled.second_state_dtype = precision.second_state;
  if (precision.keeps_master.has_value()) settled.master_weights = *precision.keeps_master;
  settled.precision = {};
  if (dtype == DType::kFp16 || dtype == DType::kBf16) {
    settled.fusions.insert(fusions_16bit.begin(), fusions_16bit.end());
  }
  // Loss scaling is for fp16.
  settled.fp16_overflow_check = fp16_overflow_check && dtype == DType::kFp16;
  settled.settled_key = settled.StructureKey();
  // Bodies know nothing of transfers between stages: schedules share them.
  if (interleaved_p2p_overlaps && schedule == Schedule::kInterleaved) {
    settled.p2p_blocking = settled.p2p_host_sync = false;
  }
  return settled;
}

absl::StatusOr<SoftwareProfile> FindSoftwareProfile(absl::string_view name) {
  const EmbeddedFile* file = FindByStem(SoftwareProfiles(), name);
  if (file == nullptr) {
    const std::vector<std::string> names = SoftwareProfileNames();
    return absl::NotFoundError(absl::StrCat("no software profile `", name, "`.", Offer(name, names),
                                            " docs/strategy.md says what each is."));
  }
  return ParseSoftwareProfile(file->contents, file->path);
}

std::vector<std::string> SoftwareProfileNames() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : SoftwareProfiles()) names.emplace_back(file.stem());
  return names;
}

}  // namespace plancast
