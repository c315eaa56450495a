#include "tests/planner/language/random_profile.h"

#include <cstdint>

namespace plancast {

void DrawProfile(Dice& dice, SoftwareProfile* profile) {
  SoftwareProfile& p = *profile;
  p.update.grad_clip = dice.Maybe(2);
  p.update.zero_grad = dice.Maybe(2);
  p.update.fresh_gradients = dice.Maybe(4);
  p.pipeline.p2p_blocking = dice.Maybe(3);
  p.pipeline.p2p_host_sync = dice.Maybe(3);
  p.pipeline.interleaved_p2p_overlaps = dice.Maybe(2);
  p.pipeline.interleaved_ends_overlap = dice.Maybe(3);
  p.pipeline.p2p_scatter_gather = dice.Maybe(3);
  p.data_parallel.pipelines_sync_each = dice.Maybe(2);
  p.data_parallel.pipelines_reshard = dice.Maybe(2);
  p.data_parallel.sync_each = dice.Maybe(2);
  p.data_parallel.reshard = dice.Maybe(2);
  if (dice.Maybe(3)) p.data_parallel.stays_through = dice.Maybe(2);
  p.kernels.wgrad_overlaps_tp = !dice.Maybe(3);
  p.kernels.fuse_wgrad_accumulation = !dice.Maybe(3);
  p.kernels.dropout = dice.Maybe(3);
  if (dice.Maybe(2)) p.kernels.fusions = {"bias_gelu", "bias_dropout_add"};
  p.kernels.vocab_pad_multiple = 0;
  p.tensors.sp_saves_sharded = !dice.Maybe(3);
  p.tensors.offload_least_bytes = dice.Of<int64_t>({0, 512});
  p.experts.weigh_activations = dice.Maybe(3);
  p.recompute.replays_only_needed = dice.Maybe(2);
  p.recompute.keeps_unread = dice.Maybe(3);
  p.types.grad_dtype = dice.Of<DType>({DType::kFp32, DType::kFp32, DType::kBf16});
  if (dice.Maybe(3)) p.types.main_grad_dtype = DType::kFp32;
  p.types.reduce_dtype = dice.Of<DType>({DType::kFp32, DType::kBf16, DType::kInt4});
  p.types.state_dtype = dice.Of<DType>({DType::kFp32, DType::kInt8});
  if (dice.Maybe(4)) p.types.param_dtype = DType::kFp8;
  p.data_parallel.shard_cut =
      dice.Of<ShardCut>({ShardCut::kParameter, ShardCut::kUnit, ShardCut::kRows});
  if (dice.Maybe(4) && p.data_parallel.shard_cut == ShardCut::kParameter) {
    p.data_parallel.shard_cut = ShardCut::kJoined;
    p.data_parallel.parameter_hook_s = 3 * p.host.launch_s;
  }
  p.data_parallel.sharded_master = dice.Maybe(2);
  p.data_parallel.root_unit = dice.Maybe(2);
  p.data_parallel.keeps_last_unit = dice.Maybe(2);
  if (dice.Maybe(2)) {
    const auto types = kOptimizerTypeNames.Values();
    p.update.type = types[dice.Below(types.size())];
  }
  if (dice.Maybe(4)) p.update.shared.whole_reductions = {p.update.type};
  if (dice.Maybe(4)) p.update.shared.part_s = 10 * p.host.launch_s;
  p.update.shared.owners_broadcast = dice.Maybe(4);
  if (dice.Maybe(2)) p.kernels.fusions.insert("product_bias");
  p.update.casts_gradients = dice.Maybe(3);
  p.calls.blocking = dice.Maybe(8);
}

namespace {

SoftwareProfile::ExtraTensor Extra(const char* name, const char* like, double element_bytes = 0) {
  SoftwareProfile::ExtraTensor extra;
  extra.name = name;
  extra.like = like;
  extra.element_bytes = element_bytes;
  return extra;
}

}  // namespace

void DrawKept(Dice& dice, SoftwareProfile* profile, DType* dtype) {
  if (dice.Maybe(3)) {
    *dtype = dice.Of<DType>({DType::kFp8, DType::kMxfp8, DType::kNvfp4});
    (dice.Maybe(3) ? profile->types.quantized_gathers : profile->types.quantized_activations) =
        true;
    if (dice.Maybe(2)) {
      profile->calls.quantize[*dtype] = {
          static_cast<int>(dice.Below(5)),
          dice.Of<OrderedScales>(
              {OrderedScales::kBoth, OrderedScales::kActivations, OrderedScales::kNone})};
    }
  }
  if (!dice.Maybe(3)) return;
  for (const char* const rule : {"linear", "gated_linear", "rms_norm", "layer_norm", "swiglu",
                                 "attention", "expert_linear", "cross_entropy"}) {
    SoftwareProfile::OpMemory& kept = profile->tensors.op_memory[rule];
    if (dice.Maybe(2)) kept.saved.push_back(Extra("saved", dice.Maybe(2) ? "x" : "y"));
    if (dice.Maybe(3)) kept.forward.push_back(Extra("forward", "x", 4));
    if (dice.Maybe(3)) kept.backward.push_back(Extra("backward", "x", 4));
    if (dice.Maybe(6)) kept.persistent.push_back(Extra("persistent", "y"));
    if (dice.Maybe(4)) kept.not_saved = {"x"};
    if (dice.Maybe(4)) kept.pinned_inputs = {"x"};
  }
}

}  // namespace plancast
