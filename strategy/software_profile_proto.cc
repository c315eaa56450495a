#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/embedded_file.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "proto/software_profile.pb.h"
#include "strategy/context_parallel.h"
#include "strategy/profile/additions.h"
#include "strategy/profile/derived_profile.h"
#include "strategy/profile/op_profile_proto.h"
#include "strategy/recompute/recompute_set.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"
#include "strategy/software_profiles.h"

namespace plancast {
namespace {

absl::StatusOr<DType> Type(const std::string& name, absl::string_view field) {
  if (name == "compute") return DType::kCompute;
  ASSIGN_OR_RETURN(const DType type, ParseDType(name), _ << field);
  return type;
}

// Types that a profile may leave out.
absl::Status OtherTypes(const proto::SoftwareProfile& p, SoftwareProfile* profile) {
  if (!p.main_grad_dtype().empty()) {
    ASSIGN_OR_RETURN(profile->types.main_grad_dtype, Type(p.main_grad_dtype(), "main_grad_dtype"));
  }
  if (!p.param_dtype().empty()) {
    ASSIGN_OR_RETURN(profile->types.param_dtype, Type(p.param_dtype(), "param_dtype"));
  }
  if (!p.gather_dtype().empty()) {
    ASSIGN_OR_RETURN(profile->types.gather_dtype, Type(p.gather_dtype(), "gather_dtype"));
  }
  if (!p.master_dtype().empty()) {
    ASSIGN_OR_RETURN(profile->types.master_dtype, Type(p.master_dtype(), "master_dtype"));
  }
  if (!p.second_state_dtype().empty()) {
    ASSIGN_OR_RETURN(profile->types.second_state_dtype,
                     Type(p.second_state_dtype(), "second_state_dtype"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ShardCut> ShardCutNamed(const std::string& name) {
  const std::optional<ShardCut> cut = kShardCutNames.Find(name.empty() ? "parameter" : name);
  if (cut.has_value()) return *cut;
  return absl::InvalidArgumentError(absl::StrCat(
      "shard_cut is `", name, "`; it must be `parameter`, `joined`, `unit` or `rows`."));
}

absl::StatusOr<OptimizerType> OptimizerOf(const std::string& name, absl::string_view field) {
  const std::optional<OptimizerType> type = kOptimizerTypeNames.Find(name);
  if (type.has_value()) return *type;
  return absl::InvalidArgumentError(absl::StrCat(field, " is `", name, "`; it must be one of ",
                                                 JoinQuoted(kOptimizerTypeNames), "."));
}

absl::Status CheckFractions(const proto::SoftwareProfile& p) {
  struct Figure {
    absl::string_view name;
    double value, low, high;
  };
  const proto::Communicators& c = p.communicators();
  // The upper ends only catch slips of unit (milliseconds, percent).
  for (const Figure& f :
       {Figure{"launch_s", p.launch_s(), 0, 0.01}, Figure{"host_sync_s", p.host_sync_s(), 0, 1},
        Figure{"graph_launch_s", p.graph_launch_s(), 0, 0.01},
        Figure{"iteration_s", p.iteration_s(), 0, 100},
        Figure{"comm_scale", p.comm_scale(), 0.1, 10},
        Figure{"interference", p.interference(), 0, 1},
        Figure{"gather_skew", p.gather_skew(), 0, 1},
        Figure{"list_collectives.above_elements", 1.0 * p.list_collectives().above_elements(), 0,
               1e15},
        Figure{"reuse_elements", 1.0 * p.reuse_elements(), 0, 1e15},
        Figure{"list_collectives.part_s", p.list_collectives().part_s(), 0, 0.01},
        Figure{"gathered_part_s", p.gathered_part_s(), 0, 0.01},
        Figure{"parameter_hook_s (of shard_cut `joined`)", p.parameter_hook_s(), 0,
               p.shard_cut() == "joined" ? 0.01 : 0},
        Figure{"comm_interference", p.comm_interference(), 0, 1},
        Figure{"allocator.fragmentation", p.allocator().fragmentation(), 0, 1},
        Figure{"communicators.channels", 1.0 * c.channels(), 0, 64},
        Figure{"communicators.ring_peers", 1.0 * c.ring_peers(), 0, 64},
        Figure{"communicators.all_to_all_peers", 1.0 * c.all_to_all_peers(), 0, 1e6},
        Figure{"communicators.all_to_all_channels", 1.0 * c.all_to_all_channels(), 0, 64}}) {
    if (f.value >= f.low && f.value <= f.high) continue;  // false for nan
    return absl::InvalidArgumentError(
        absl::StrCat(f.name, " is ", f.value, "; it must be from ", f.low, " to ", f.high, "."));
  }
  if (p.vocab_pad_multiple() < 0 || p.vocab_pad_multiple() > 1'000'000) {
    return absl::InvalidArgumentError(absl::StrCat("vocab_pad_multiple is ", p.vocab_pad_multiple(),
                                                   "; it must be from 0 to 1000000."));
  }
  if (p.bucket_bytes() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("bucket_bytes is ", p.bucket_bytes(), "; it must be positive."));
  }
  if (p.first_bucket_bytes() < 0 || p.first_bucket_bytes() > p.bucket_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("first_bucket_bytes is ", p.first_bucket_bytes(),
                                                   "; it must be from 0 to bucket_bytes, ",
                                                   p.bucket_bytes(), "."));
  }
  return absl::OkStatus();
}

// Sizes of up to 100 GB catch slips of unit.
absl::StatusOr<MemoryOverhead> MemoryFromProto(const proto::SoftwareProfile& p) {
  MemoryOverhead memory;
  const proto::Allocator& a = p.allocator();
  const proto::Communicators& c = p.communicators();
  struct Size {
    absl::string_view name;
    int64_t value;
    int64_t* to;
  };
  AllocatorParams& allocator = memory.allocator;
  CommunicatorParams& comms = memory.communicators;
  for (const Size& s :
       {Size{"context_bytes", p.context_bytes(), &memory.context_bytes},
        Size{"allocator.block_bytes", a.block_bytes(), &allocator.block_bytes},
        Size{"allocator.small_bytes", a.small_bytes(), &allocator.small_bytes},
        Size{"allocator.small_segment_bytes", a.small_segment_bytes(),
             &allocator.small_segment_bytes},
        Size{"allocator.large_bytes", a.large_bytes(), &allocator.large_bytes},
        Size{"allocator.large_multiple_bytes", a.large_multiple_bytes(),
             &allocator.large_multiple_bytes},
        Size{"allocator.middle_segment_bytes", a.middle_segment_bytes(),
             &allocator.middle_segment_bytes},
        Size{"communicators.fixed_bytes", c.fixed_bytes(), &comms.fixed_bytes},
        Size{"communicators.simple_bytes", c.simple_bytes(), &comms.simple_bytes},
        Size{"communicators.ll_bytes", c.ll_bytes(), &comms.ll_bytes},
        Size{"communicators.ll128_bytes", c.ll128_bytes(), &comms.ll128_bytes},
        Size{"communicators.multiple_bytes", c.multiple_bytes(), &comms.multiple_bytes},
        Size{"communicators.send_bytes", c.send_bytes(), &comms.send_bytes}}) {
    if (s.value < 0 || s.value > 100'000'000'000) {
      return absl::InvalidArgumentError(
          absl::StrCat(s.name, " is ", s.value, "; it must be from 0 to 100000000000 bytes."));
    }
    *s.to = s.value;
  }
  if (allocator.small_bytes > allocator.large_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "allocator.small_bytes is ", allocator.small_bytes, " and allocator.large_bytes ",
        allocator.large_bytes, "; a small block must not be larger than a large one."));
  }
  allocator.fragmentation = a.fragmentation();
  allocator.expandable_segments = a.expandable_segments();
  allocator.stream_pools = a.stream_pools();
  allocator.state_in_step = a.state_in_step();
  comms.channels = c.channels();
  comms.ring_peers = c.ring_peers();
  comms.all_to_all_peers = c.all_to_all_peers();
  comms.all_to_all_channels = c.all_to_all_channels();
  return memory;
}

absl::StatusOr<FrameworkLimits> LimitsFromProto(const proto::FrameworkLimits& p) {
  FrameworkLimits limits;
  for (const int stage : p.zero()) {
    if (stage < 0 || stage > 3) {
      return absl::InvalidArgumentError(
          absl::StrCat("limits.zero is ", stage, "; stages are 0 to 3."));
    }
    limits.zero.insert(stage);
  }
  for (const std::string& mode : p.recompute()) {
    const bool counts = mode == "every" || mode == "uniform";
    RETURN_IF_ERROR(ParseShortForm(absl::StrCat("recompute=", mode, counts ? ":1" : "")).status())
        << "limits.recompute";
    limits.recompute.insert(mode);
  }
  for (const std::string& word : p.recompute_words()) {
    RETURN_IF_ERROR(FindRecomputeSet(word).status()) << "limits.recompute_words";
    limits.recompute_words.push_back(word);
  }
  limits.tp = !p.has_tp() || p.tp();
  limits.pp = !p.has_pp() || p.pp();
  limits.ep = !p.has_ep() || p.ep();
  limits.cp = !p.has_cp() || p.cp();
  limits.pairs = p.pairs();
  limits.tp_beside = p.tp_beside();
  limits.data_beside = p.data_beside();
  limits.vpp = !p.has_vpp() || p.vpp();
  if (p.has_pipeline_batches()) {
    const auto batches = kPipelineBatchesNames.Find(p.pipeline_batches());
    if (!batches.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("limits.pipeline_batches is `",
                                                     p.pipeline_batches(), "`; it must be one of ",
                                                     JoinQuoted(kPipelineBatchesNames), "."));
    }
    limits.pipeline_batches = *batches;
  }
  limits.cp_types = {p.cp_type().begin(), p.cp_type().end()};
  if (p.has_sp()) limits.sp = p.sp();
  limits.unsharded_tp = !p.has_unsharded_tp() || p.unsharded_tp();
  return limits;
}

absl::StatusOr<PartTransport> TransportFromProto(const proto::PartTransport& p) {
  PartTransport transport;
  const auto way = kTransportWayNames.Find(p.way());
  if (!way.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("way is `", p.way(), "`; it must be one of ",
                                                   JoinQuoted(kTransportWayNames), "."));
  }
  transport.way = *way;
  transport.pieces = p.pieces();
  if (p.pieces() < 0 || p.pieces() > 1024 ||
      (p.pieces() > 0 && *way != PartTransport::Way::kCollective)) {
    return absl::InvalidArgumentError(
        absl::StrCat("pieces is ", p.pieces(),
                     "; it must be 0 to 1024, and 0 unless way is `collective`: others have a "
                     "piece for each rank."));
  }
  transport.copy_engines = p.copy_engines();
  if (p.copy_engines() && !transport.sends()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "copy_engines with way `", p.way(), "`: they send from rank to rank (`ring`, `peers`)."));
  }
  transport.staged = p.staged();
  transport.only_with_grad = p.only_with_grad();
  transport.spared = p.spared();
  if (p.spared() && *way != PartTransport::Way::kCollective) {
    return absl::InvalidArgumentError(
        absl::StrCat("spared with way `", p.way(), "`: products leave SMs to `collective`."));
  }
  if (!p.has_sum_rate()) return transport;
  transport.sum_rate = p.sum_rate();
  if (!(p.sum_rate() > 0 && p.sum_rate() <= 1) || *way != PartTransport::Way::kPeers) {
    return absl::InvalidArgumentError(
        absl::StrCat("sum_rate is ", p.sum_rate(), " with way `", p.way(),
                     "`; it must be above 0 and at most 1, and way `peers`: others have no kernel "
                     "for the sum of all parts."));
  }
  return transport;
}

absl::Status TransportsFromProto(const proto::TpTransports& p, TpTransports* transports) {
  struct Named {
    absl::string_view name;
    bool given;
    const proto::PartTransport& from;
    PartTransport* to;
  };
  for (const Named& each : {Named{"gather", p.has_gather(), p.gather(), &transports->gather},
                            Named{"scatter", p.has_scatter(), p.scatter(), &transports->scatter},
                            Named{"gradient_gather", p.has_gradient_gather(), p.gradient_gather(),
                                  &transports->gradient_gather},
                            Named{"gradient_scatter", p.has_gradient_scatter(),
                                  p.gradient_scatter(), &transports->gradient_scatter}}) {
    if (!each.given) continue;
    ASSIGN_OR_RETURN(*each.to, TransportFromProto(each.from), _ << "tp_transports." << each.name);
  }
  if (p.has_streams()) transports->streams = p.streams();
  if (transports->streams < 1 || transports->streams > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("tp_transports.streams is ", p.streams(), "; it must be 1 to 1024."));
  }
  if (!p.has_quantized_scatter()) return absl::OkStatus();
  ASSIGN_OR_RETURN(transports->quantized_scatter, TransportFromProto(p.quantized_scatter()),
                   _ << "tp_transports.quantized_scatter");
  return absl::OkStatus();
}

absl::StatusOr<ContextSteps> StepsFromProto(const proto::ContextSteps& p) {
  ContextSteps steps;
  steps.gathers = p.gathers();
  steps.waits = p.waits();
  steps.repeats_kv = p.repeats_kv();
  steps.fp32_sums = p.fp32_sums();
  steps.returns_sums = p.returns_sums();
  if (p.has_merge_passes()) steps.merge_passes = p.merge_passes();
  steps.packs = p.packs();
  steps.sum_packs = p.sum_packs();
  const bool fit = steps.merge_passes >= 1 && steps.packs >= 0 && steps.sum_packs >= 0 &&
                   std::max({steps.merge_passes, steps.packs, steps.sum_packs}) <= 100;
  if (fit) return steps;
  return absl::InvalidArgumentError(
      "context_steps: merge_passes must be 1 to 100, packs and sum_packs 0 to 100.");
}

absl::StatusOr<SoftwareProfile> FromProto(const proto::SoftwareProfile& p) {
  RETURN_IF_ERROR(CheckFractions(p));
  SoftwareProfile profile;
  profile.name = p.name();
  profile.description = p.description();
  ASSIGN_OR_RETURN(profile.limits, LimitsFromProto(p.limits()));
  profile.kernels.fusions.insert(p.fusions().begin(), p.fusions().end());
  profile.kernels.fusions_16bit.insert(p.fusions_16bit().begin(), p.fusions_16bit().end());
  profile.kernels.eager.insert(p.eager().begin(), p.eager().end());
  ASSIGN_OR_RETURN(profile.kernels.extra, ExtraKernelsFromProto(p));
  ASSIGN_OR_RETURN(profile.calls, HostCallsFromProto(p));
  ASSIGN_OR_RETURN(profile.tensors.op_memory, OpMemoryFromProto(p));
  if (p.workspace_bytes() < 0 || p.workspace_bytes() > 100'000'000'000) {
    return absl::InvalidArgumentError(absl::StrCat("workspace_bytes is ", p.workspace_bytes(),
                                                   "; it must be from 0 to 100000000000 bytes."));
  }
  profile.tensors.workspace_bytes = p.workspace_bytes();
  profile.kernels.whole_rules.insert(p.whole_rules().begin(), p.whole_rules().end());
  const std::optional<Attention> attention = kAttentionNames.Find(p.default_attention());
  if (!attention.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("default_attention is `", p.default_attention(),
                                                   "`; it must be `flash` or `unfused`."));
  }
  profile.kernels.attention = *attention;
  profile.kernels.attention_kernel = p.attention_kernel();
  profile.kernels.vocab_pad_multiple = p.vocab_pad_multiple();
  ASSIGN_OR_RETURN(profile.types.grad_dtype, Type(p.grad_dtype(), "grad_dtype"));
  ASSIGN_OR_RETURN(profile.types.reduce_dtype, Type(p.reduce_dtype(), "reduce_dtype"));
  RETURN_IF_ERROR(OtherTypes(p, &profile));
  profile.types.master_weights = p.master_weights();
  ASSIGN_OR_RETURN(profile.types.state_dtype, Type(p.state_dtype(), "state_dtype"));
  profile.update.grad_clip = p.grad_clip();
  profile.update.fp16_overflow_check = p.fp16_overflow_check();
  profile.update.zero_grad = p.zero_grad();
  profile.update.fresh_gradients = p.fresh_gradients();
  profile.update.casts_gradients = p.casts_gradients();
  if (p.has_offload_least_bytes()) profile.tensors.offload_least_bytes = p.offload_least_bytes();
  profile.kernels.wgrad_overlaps_tp = p.wgrad_overlaps_tp();
  profile.tensors.sp_saves_sharded = p.sp_saves_sharded();
  profile.pipeline.p2p_scatter_gather = p.p2p_scatter_gather();
  profile.pipeline.p2p_blocking = p.p2p_blocking();
  profile.pipeline.p2p_host_sync = p.p2p_host_sync();
  for (const std::string& name : p.default_overlap()) {
    const std::optional<Overlap> overlap = kOverlapNames.Find(name);
    if (!overlap.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "default_overlap has `", name, "`; it may have ", JoinQuoted(kOverlapNames), "."));
    }
    profile.data_parallel.overlap.insert(*overlap);
  }
  profile.data_parallel.bucket_bytes = p.bucket_bytes();
  profile.data_parallel.first_bucket_bytes = p.first_bucket_bytes();
  profile.kernels.dropout = p.dropout();
  profile.kernels.fuse_wgrad_accumulation = p.fuse_wgrad_accumulation();
  profile.types.bf16_gradients_in_fp32 = p.bf16_gradients_in_fp32();
  profile.pipeline.interleaved_p2p_overlaps = p.interleaved_p2p_overlaps();
  profile.pipeline.interleaved_ends_overlap = p.interleaved_ends_overlap();
  profile.types.quantized_activations = p.quantized_activations();
  profile.types.quantized_gathers = p.quantized_gathers();
  profile.kernels.reduces_each_product = p.reduces_each_product();
  profile.kernels.first_dim_collectives = p.first_dim_collectives();
  profile.kernels.repeats_kv = p.repeats_kv();
  if (!p.optimizer_type().empty()) {
    ASSIGN_OR_RETURN(profile.update.type, OptimizerOf(p.optimizer_type(), "optimizer_type"));
  }
  profile.update.shared.part_s = p.gathered_part_s();
  profile.update.shared.owners_broadcast = p.owners_broadcast();
  for (const std::string& name : p.whole_reductions()) {
    ASSIGN_OR_RETURN(const OptimizerType type, OptimizerOf(name, "whole_reductions"));
    profile.update.shared.whole_reductions.insert(type);
  }
  profile.update.foreach_optimizer = p.foreach_optimizer();
  profile.kernels.separate_products.insert(p.separate_products().begin(),
                                           p.separate_products().end());
  profile.recompute.norms_in_products = p.norms_in_products();
  profile.recompute.replays_only_needed = p.replays_only_needed();
  profile.recompute.keeps_unread = p.keeps_unread();
  if (p.selective_recompute_size() > 0) {
    profile.recompute.selective.assign(p.selective_recompute().begin(),
                                       p.selective_recompute().end());
  }
  for (const std::string& word : profile.recompute.selective) {
    RETURN_IF_ERROR(FindRecomputeSet(word).status()) << "selective_recompute";
  }
  profile.types.unquantized.insert(p.unquantized().begin(), p.unquantized().end());
  if (!p.context_parallel().empty()) {
    ASSIGN_OR_RETURN(const ContextParallel cp, ContextParallel::Parse(p.context_parallel()),
                     _ << "context_parallel");
    profile.context_parallel = cp.type;
  }
  if (p.context_copies() < 0 || p.context_copies() > 100) {
    return absl::InvalidArgumentError(
        absl::StrCat("context_copies is ", p.context_copies(), "; it must be 0 to 100."));
  }
  profile.kernels.context_copies = p.context_copies();
  RETURN_IF_ERROR(TransportsFromProto(p.tp_transports(), &profile.kernels.tp_transports));
  ASSIGN_OR_RETURN(profile.kernels.context_steps, StepsFromProto(p.context_steps()));
  profile.experts.weigh_activations = p.experts_weigh_activations();
  profile.experts.sort_tokens = p.experts_sort_tokens();
  profile.experts.dispatch_sends_once = p.dispatch_sends_once();
  if (p.dispatch_sms() < 0 || p.dispatch_sms() > 1024 ||
      (p.dispatch_sms() > 0 && !p.dispatch_sends_once())) {
    return absl::InvalidArgumentError(
        absl::StrCat("dispatch_sms is ", p.dispatch_sms(),
                     "; it must be 0 to 1024, and 0 without dispatch_sends_once."));
  }
  profile.experts.dispatch_sms = p.dispatch_sms();
  profile.experts.deals_tokens = p.deals_tokens();
  profile.experts.shared_beside = p.experts_shared_beside();
  ASSIGN_OR_RETURN(profile.data_parallel.shard_cut, ShardCutNamed(p.shard_cut()));
  profile.data_parallel.sharded_master = p.sharded_master();
  profile.data_parallel.root_unit = p.root_unit();
  profile.data_parallel.keeps_last_unit = p.keeps_last_unit();
  profile.data_parallel.pipelines_reshard = !p.has_pipelines_reshard() || p.pipelines_reshard();
  profile.data_parallel.pipelines_sync_each =
      !p.has_pipelines_sync_each() || p.pipelines_sync_each();
  profile.data_parallel.reshard = !p.has_reshard() || p.reshard();
  profile.data_parallel.sync_each = !p.has_sync_each() || p.sync_each();
  if (p.has_stays_through()) profile.data_parallel.stays_through = p.stays_through();
  profile.data_parallel.lists = p.has_list_collectives();
  profile.data_parallel.lists_above = p.list_collectives().above_elements();
  profile.data_parallel.reuse_elements = p.reuse_elements();
  profile.data_parallel.list_part_s = p.list_collectives().part_s();
  profile.data_parallel.parameter_hook_s = p.parameter_hook_s();
  profile.host.launch_s = p.launch_s();
  profile.host.host_sync_s = p.host_sync_s();
  profile.host.cuda_graphs = p.cuda_graphs();
  profile.host.graph_launch_s = p.graph_launch_s();
  profile.host.iteration_s = p.iteration_s();
  profile.contention.comm_scale = p.comm_scale();
  if (p.has_interference()) profile.contention.interference = p.interference();
  if (p.has_comm_interference()) profile.contention.comm_interference = p.comm_interference();
  profile.contention.gather_skew = p.gather_skew();
  profile.lineage = p.lineage();
  profile.from_documentation = p.from_documentation();
  if (!p.link_sharing().empty()) {
    ASSIGN_OR_RETURN(profile.contention.link_sharing, ParseLinkSharing(p.link_sharing()));
  }
  ASSIGN_OR_RETURN(profile.memory, MemoryFromProto(p));
  return profile;
}

}  // namespace

absl::StatusOr<SoftwareProfile> ParseSoftwareProfile(absl::string_view text,
                                                     absl::string_view what) {
  ASSIGN_OR_RETURN(const auto message, ReadDerivedProfile(text, what));
  ASSIGN_OR_RETURN(SoftwareProfile profile, FromProto(message), _ << what);
  return profile;
}

absl::StatusOr<SoftwareProfile> FindSoftwareProfile(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '+');
  const EmbeddedFile* file = FindByStem(SoftwareProfiles(), parts[0]);
  if (file == nullptr) {
    return absl::NotFoundError(absl::StrCat("no software profile `", parts[0], "`.",
                                            Offer(parts[0], SoftwareProfileNames()),
                                            " docs/strategy.md says what each is."));
  }
  std::vector<const EmbeddedFile*> additions;
  for (size_t i = 1; i < parts.size(); ++i) {
    ASSIGN_OR_RETURN(const EmbeddedFile* addition, FindProfileAddition(parts[i]),
                     _ << "profile `" << name << "`");
    if (std::count(additions.begin(), additions.end(), addition) > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("profile `", name, "` adds `", parts[i], "` twice. Say it once."));
    }
    additions.push_back(addition);
  }
  ASSIGN_OR_RETURN(auto message, ReadDerivedProfile(file->contents, file->path));
  ASSIGN_OR_RETURN(message, WithAdditions(std::move(message), additions));
  return FromProto(message);
}

std::vector<std::string> SoftwareProfileNames() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : SoftwareProfiles()) names.emplace_back(file.stem());
  return names;
}

}  // namespace plancast
