#include "strategy/software_profile.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/embedded_file.h"
#include "base/suggest.h"
#include "strategy/software_profiles.h"

namespace plancast {

int64_t SoftwareProfile::PaddedVocab(int64_t vocab, int64_t tp) const {
  const int64_t multiple = vocab_pad_multiple * tp;
  if (multiple <= 1) return vocab;
  return (vocab + multiple - 1) / multiple * multiple;
}

std::string SoftwareProfile::StructureKey() const {
  const auto types = {grad_dtype, reduce_dtype, state_dtype};
  const auto flags = {master_weights,
                      grad_clip,
                      fp16_overflow_check,
                      zero_grad,
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
                      experts_weigh_activations,
                      experts_sort_tokens,
                      dispatch_sends_once};
  const auto number = [](std::string* out, auto value) {
    absl::StrAppend(out, static_cast<int>(value));
  };
  return absl::StrCat(
      name, " fuses ", absl::StrJoin(fusions, ","), "+", absl::StrJoin(fusions_16bit, ","),
      " eager ", absl::StrJoin(eager, ","), " attention ", static_cast<int>(default_attention),
      " vocab ", vocab_pad_multiple, " types ", absl::StrJoin(types, ",", number), " flags ",
      absl::StrJoin(flags, "", number), " overlaps ", absl::StrJoin(default_overlap, ",", number),
      " bucket ", bucket_bytes, " 16 bits ", absl::StrJoin(unquantized, ","), " around ",
      absl::StrJoin(around, ",", [&](std::string* out, const auto& entry) {
        const Around& a = entry.second;
        absl::StrAppend(out, entry.first, " ", a.forward_passes, " ", a.backward_passes, " ",
                        a.fp32, " ", a.forward_casts, " ", a.backward_casts);
      }));
}

bool SoftwareProfile::Quantizes(absl::string_view name) const {
  const size_t dot = name.rfind('.');
  if (dot != absl::string_view::npos) name.remove_prefix(dot + 1);
  return unquantized.count(std::string(name)) == 0;
}

SoftwareProfile SoftwareProfile::For(DType dtype, Schedule schedule) const {
  SoftwareProfile settled = *this;
  for (DType* type : {&settled.grad_dtype, &settled.reduce_dtype, &settled.state_dtype}) {
    if (*type == DType::kCompute) *type = StorageType(dtype);
  }
  if (bf16_gradients_in_fp32 && StorageType(dtype) == DType::kBf16) {
    settled.grad_dtype = settled.reduce_dtype = DType::kFp32;
  }
  if (interleaved_p2p_overlaps && schedule == Schedule::kInterleaved) {
    settled.p2p_blocking = settled.p2p_host_sync = false;
  }
  if (dtype == DType::kFp16 || dtype == DType::kBf16) {
    settled.fusions.insert(fusions_16bit.begin(), fusions_16bit.end());
  }
  // Loss scaling is for fp16.
  settled.fp16_overflow_check = fp16_overflow_check && dtype == DType::kFp16;
  return settled;
}

absl::StatusOr<SoftwareProfile> FindSoftwareProfile(absl::string_view name) {
  const EmbeddedFile* file = FindByStem(SoftwareProfiles(), name);
  if (file == nullptr) {
    const std::vector<std::string> names = SoftwareProfileNames();
    return absl::NotFoundError(absl::StrCat("no software profile `", name, "`; there are ",
                                            JoinQuoted(names), ".", DidYouMean(name, names)));
  }
  return ParseSoftwareProfile(file->contents, file->path);
}

std::vector<std::string> SoftwareProfileNames() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : SoftwareProfiles()) names.emplace_back(file.stem());
  return names;
}

}  // namespace plancast
