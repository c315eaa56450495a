#include "strategy/software_profile.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/suggest.h"

namespace plancast {

int64_t SoftwareProfile::PaddedVocab(int64_t vocab, int64_t tp) const {
  const int64_t multiple = kernels.vocab_pad_multiple * tp;
  if (multiple <= 1) return vocab;
  return (vocab + multiple - 1) / multiple * multiple;
}

absl::string_view SoftwareProfile::base() const {
  return absl::string_view(name).substr(0, name.find('+'));
}

std::string SoftwareProfile::StructureKey() const {
  if (!settled_key.empty()) return settled_key;
  std::string key;
  AppendKey(name, &key);
  AppendKey(kernels, &key);
  AppendKey(calls, &key);
  AppendKey(types, &key);
  absl::StrAppend(&key, precision.DebugString(), " ");
  AppendKey(tensors, &key);
  AppendKey(update, &key);
  AppendKey(data_parallel, &key);
  AppendKey(pipeline, &key);
  AppendKey(experts, &key);
  AppendKey(recompute, &key);
  return key;
}

absl::Status SoftwareProfile::Capture(absl::string_view scopes) {
  for (const absl::string_view scope : absl::StrSplit(scopes, '+')) {
    if (calls.scopes.count(std::string(scope)) > 0) {
      calls.captured.insert(std::string(scope));
      continue;
    }
    if (calls.scopes.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("profile `", name, "` captures no parts of layers as CUDA graphs (`", scope,
                       "`); without parts, whole passes are captured."));
    }
    std::vector<std::string> known;
    for (const auto& [part, ops] : calls.scopes) known.push_back(part);
    return absl::InvalidArgumentError(absl::StrCat("no part `", scope,
                                                   "` of CUDA graphs in profile `", name, "`.",
                                                   Offer(std::string(scope), known)));
  }
  return absl::OkStatus();
}

bool SoftwareProfile::Quantizes(absl::string_view name) const {
  const size_t dot = name.rfind('.');
  if (dot != absl::string_view::npos) name.remove_prefix(dot + 1);
  return types.unquantized.count(std::string(name)) == 0;
}

DType SoftwareProfile::ParamType(DType dtype) const {
  return types.param_dtype == DType::kCompute ? StorageType(dtype) : types.param_dtype;
}

DType SoftwareProfile::GatherType(DType dtype) const {
  const DType type = types.gather_dtype.value_or(ParamType(dtype));
  return type == DType::kCompute ? StorageType(dtype) : type;
}

std::optional<DType> SoftwareProfile::MasterType(DType dtype) const {
  if (!types.master_weights || ParamType(dtype) == DType::kFp32) return std::nullopt;
  return types.master_dtype;
}

SoftwareProfile SoftwareProfile::For(DType dtype, Schedule schedule) const {
  SoftwareProfile settled = *this;
  settled.settled_key.clear();
  const auto settle = [dtype](DType* type) {
    if (*type == DType::kCompute) *type = StorageType(dtype);
  };
  for (DType* type :
       {&settled.types.grad_dtype, &settled.types.reduce_dtype, &settled.types.param_dtype,
        &settled.types.master_dtype, &settled.types.state_dtype}) {
    settle(type);
  }
  for (std::optional<DType>* type : {&settled.types.main_grad_dtype, &settled.types.gather_dtype,
                                     &settled.types.second_state_dtype}) {
    if (type->has_value()) settle(&**type);
  }
  if (types.bf16_gradients_in_fp32 && StorageType(dtype) == DType::kBf16) {
    settled.types.grad_dtype = settled.types.reduce_dtype = DType::kFp32;
  }
  settled.types.bf16_gradients_in_fp32 = false;
  const auto take = [](const auto& asked, auto* type) {
    if (asked.has_value()) *type = *asked;
  };
  take(precision.grad, &settled.types.grad_dtype);
  take(precision.main_grad, &settled.types.main_grad_dtype);
  take(precision.reduce, &settled.types.reduce_dtype);
  take(precision.gather, &settled.types.gather_dtype);
  take(precision.param, &settled.types.param_dtype);
  take(precision.master, &settled.types.master_dtype);
  take(precision.attention, &settled.types.attention_dtype);
  take(precision.optimizer, &settled.update.type);
  take(precision.state, &settled.types.state_dtype);
  if (precision.state.has_value()) settled.types.second_state_dtype = precision.second_state;
  if (precision.keeps_master.has_value()) settled.types.master_weights = *precision.keeps_master;
  settled.precision = {};
  if (dtype == DType::kFp16 || dtype == DType::kBf16) {
    settled.kernels.fusions.insert(kernels.fusions_16bit.begin(), kernels.fusions_16bit.end());
  }
  std::optional<PartTransport>& quantized = settled.kernels.tp_transports.quantized_scatter;
  if (quantized.has_value() && ElementBytes(dtype) < ElementBytes(StorageType(dtype))) {
    settled.kernels.tp_transports.scatter = *quantized;
  }
  quantized.reset();
  // Loss scaling is for fp16.
  settled.update.fp16_overflow_check = update.fp16_overflow_check && dtype == DType::kFp16;
  // What is captured as a whole does without the host.
  if (host.cuda_graphs) settled.calls.waits.clear();
  settled.settled_key = settled.StructureKey();
  // Bodies know nothing of transfers between stages: schedules share them.
  if (pipeline.interleaved_p2p_overlaps && schedule == Schedule::kInterleaved) {
    settled.pipeline.ends_block = pipeline.p2p_blocking && !pipeline.interleaved_ends_overlap;
    settled.pipeline.p2p_blocking = settled.pipeline.p2p_host_sync = false;
  }
  return settled;
}

}  // namespace plancast
