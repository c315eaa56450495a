#ifndef PLANCAST_STRATEGY_SOFTWARE_PROFILE_H_
#define PLANCAST_STRATEGY_SOFTWARE_PROFILE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/memo_key.h"
#include "cluster/link_sharing.h"
#include "graph/dtype.h"
#include "graph/execution/memory_overhead.h"
#include "strategy/framework_limits.h"
#include "strategy/nodes/part_transport.h"
#include "strategy/plan_options.h"
#include "strategy/precision.h"
#include "strategy/profile/op_profile.h"
#include "strategy/profile/optimizer_type.h"
#include "strategy/profile/shard_cut.h"
#include "strategy/profile/shared_update.h"

namespace plancast {

// How a framework runs a plan: data (strategy/data/*.textproto), never code. The fields come
// in groups by what they are about. proto/software_profile.proto documents every one, the
// data files the source of every figure.
struct SoftwareProfile {
  // Of single ops (op_profile.h).
  using ExtraKernels = plancast::ExtraKernels;
  using ExtraTensor = plancast::ExtraTensor;
  using OpMemory = plancast::OpMemory;
  using Calls = HostCallsOfOps;

  // Which kernels run for an op, and which collectives of tensor parallelism beside it.
  struct Kernels {
    std::set<std::string> fusions;            // op fusion labels that run as one kernel
    std::set<std::string> fusions_16bit;      // more of them where products run in 16 bits
    std::set<std::string> eager;              // rules that run one kernel per arithmetic operation
    std::set<std::string> separate_products;  // rules that run one product for each weight
    std::set<std::string> whole_rules;        // not cut over tp
    std::map<std::string, ExtraKernels> extra;  // by rule
    Attention attention = Attention::kFlash;    // where the strategy says nothing
    std::string attention_kernel;               // of fused attention; empty: the GPU's best
    int64_t vocab_pad_multiple = 128;           // times tp; 0: not padded
    bool dropout = true;                        // model trains with dropout kernels
    bool repeats_kv = false;                    // keys and values copied for each query head
    // The wgrad GEMM adds into the main gradient; else a separate add.
    bool fuse_wgrad_accumulation = true;
    bool wgrad_overlaps_tp = true;       // tp collective of dgrad hidden behind wgrad
    bool reduces_each_product = false;   // of separate_products: gradients of the input, over tp
    bool first_dim_collectives = false;  // over tp; copies put parts of other dims in order
    int context_copies = 0;              // of what goes to and fro between heads and sequence
    TpTransports tp_transports;          // of what overlap=tp runs in parts
    ContextSteps context_steps;          // of rings over cp
    PLANCAST_KEY_FIELDS(Kernels, fusions, fusions_16bit, eager, separate_products, whole_rules,
                        extra, attention, attention_kernel, vocab_pad_multiple, dropout, repeats_kv,
                        fuse_wgrad_accumulation, wgrad_overlaps_tp, reduces_each_product,
                        first_dim_collectives, context_copies, tp_transports, context_steps)
  };

  // Types of storage and wire.
  struct Types {
    DType grad_dtype = DType::kFp32;    // main gradient buffer, accumulated by wgrad
    DType reduce_dtype = DType::kFp32;  // wire type of the gradient reduction
    // Of gradients as the optimizer reads them, copied while it runs; absent: grad_dtype.
    std::optional<DType> main_grad_dtype;
    DType param_dtype = DType::kCompute;      // parameters at rest
    std::optional<DType> gather_dtype;        // wire type of parameter gathers; absent: param_dtype
    bool master_weights = true;               // another copy of parameters that are not fp32
    DType master_dtype = DType::kFp32;        // its type
    DType state_dtype = DType::kFp32;         // the optimizer's moments
    std::optional<DType> second_state_dtype;  // the second moment's, where it is another
    bool bf16_gradients_in_fp32 = false;      // whatever grad_dtype and reduce_dtype say
    bool quantized_activations = false;       // of products: gathered and kept in their 8 or 4 bits
    bool quantized_gathers = false;           // only gathered in that type, with one scale a tensor
    std::set<std::string> unquantized;        // products in 16 bits: last part of an op's name
    std::optional<DType> attention_dtype;     // of fused attention; absent: of activations
    PLANCAST_KEY_FIELDS(Types, grad_dtype, reduce_dtype, main_grad_dtype, param_dtype, gather_dtype,
                        master_weights, master_dtype, state_dtype, second_state_dtype,
                        bf16_gradients_in_fp32, quantized_activations, quantized_gathers,
                        unquantized, attention_dtype)
  };

  // What lies in memory for an op, and what is moved from there.
  struct Tensors {
    std::map<std::string, OpMemory> op_memory;  // by rule
    int64_t workspace_bytes = 0;                // of the allocator, kept by libraries
    bool sp_saves_sharded = true;           // saves stay Shard(seq), second all-gather in backward
    int64_t offload_least_bytes = 2 << 20;  // of a tensor that offload=activations moves
    PLANCAST_KEY_FIELDS(Tensors, op_memory, workspace_bytes, sp_saves_sharded, offload_least_bytes)
  };

  // Gradients from the first micro-batch to the optimizer, and its step.
  struct Update {
    bool fresh_gradients = false;      // made by backward passes, given up by the optimizer
    bool casts_gradients = false;      // cast to grad_dtype behind the pass that made them
    bool zero_grad = true;             // gradient buffer cleared each iteration
    bool grad_clip = true;             // gradient norm, its all-reduce, scaling
    bool fp16_overflow_check = false;  // one more pass over gradients, for fp16 only
    OptimizerType type = OptimizerType::kAdam;
    bool foreach_optimizer = false;  // one pass for each arithmetic operation of it
    SharedUpdate shared;             // of ranks that share the state
    bool finds_norm() const { return grad_clip || type == OptimizerType::kLamb; }  // of all
    PLANCAST_KEY_FIELDS(Update, fresh_gradients, casts_gradients, zero_grad, grad_clip,
                        fp16_overflow_check, type, foreach_optimizer, shared)
  };

  // Messages of data parallelism, and shards.
  struct DataParallel {
    std::set<Overlap> overlap;  // where the strategy says nothing, of tp and others too
    int64_t bucket_bytes = 25'000'000;
    int64_t first_bucket_bytes = 0;  // of the first of a pass; 0: software has no size of its own
    ShardCut shard_cut = ShardCut::kParameter;
    bool sharded_master = false;   // with zero=3 parameters at rest are the fp32 master's shard
    bool root_unit = false;        // modules outside of lists are gathered as one unit, at first
    bool keeps_last_unit = false;  // what follows the last list stays gathered for its backward
    // Where the strategy says nothing; with pipelines and without.
    bool pipelines_reshard = true, pipelines_sync_each = true, reshard = true, sync_each = true;
    std::optional<bool> stays_through;  // all micro-batches, where neither is so
    bool stays() const { return stays_through.value_or(shard_cut != ShardCut::kRows); }
    // A parameter of more elements goes by itself, in lists of parts that take the host so long.
    bool lists = false;
    int64_t lists_above = 0, reuse_elements = 0;  // again where as many run in between; 0: never
    double list_part_s = 0;
    double parameter_hook_s = 0;  // host time of hooks, for each parameter that is gathered
    PLANCAST_KEY_FIELDS(DataParallel, overlap, bucket_bytes, first_bucket_bytes, shard_cut,
                        sharded_master, root_unit, keeps_last_unit, pipelines_reshard,
                        pipelines_sync_each, reshard, sync_each, stays_through, lists, lists_above,
                        reuse_elements, list_part_s, parameter_hook_s)
  };

  // Transfers between pipeline stages.
  struct Pipeline {
    bool p2p_scatter_gather = false;  // each tp rank sends 1/tp, receiver gathers (without sp)
    bool p2p_blocking = false;        // compute waits for the send as well
    bool p2p_host_sync = false;       // the host waits for every point-to-point batch
    bool interleaved_p2p_overlaps = false;  // whatever p2p_blocking and p2p_host_sync say
    bool interleaved_ends_overlap = false;  // in warm-up and flush, too
    bool ends_block = false;  // settled: compute waits for transfers there, and not in between
    PLANCAST_KEY_FIELDS(Pipeline, p2p_scatter_gather, p2p_blocking, p2p_host_sync,
                        interleaved_p2p_overlaps, interleaved_ends_overlap, ends_block)
  };

  // Mixtures of experts.
  struct Experts {
    bool weigh_activations = false;    // tokens' weights go to their experts
    bool sort_tokens = false;          // with ep: kernels order tokens by expert
    bool dispatch_sends_once = false;  // one copy of a token to each node and device
    int dispatch_sms = 0;              // of kernels that send so; 0: a collective's
    bool deals_tokens = false;         // a token's experts follow one another
    bool shared_beside = false;        // with ep: shared experts run while tokens are sent
    PLANCAST_KEY_FIELDS(Experts, weigh_activations, sort_tokens, dispatch_sends_once, dispatch_sms,
                        deals_tokens, shared_beside)
  };

  // What runs again in backward passes.
  struct Recomputation {
    std::vector<std::string> selective = {"core_attn"};  // what plain `selective` stands for
    bool norms_in_products = false;    // those that one product alone reads (compiler/bind)
    bool replays_only_needed = false;  // nothing whose result no gradient reads
    bool keeps_unread = false;         // a set's kept results, though no gradient reads them
    PLANCAST_KEY_FIELDS(Recomputation, selective, norms_in_products, replays_only_needed,
                        keeps_unread)
  };

  // The processor that issues kernels; times of RuntimeParams.
  struct Host {
    double launch_s = 0, host_sync_s = 0, graph_launch_s = 0, iteration_s = 0;
    bool cuda_graphs = false;
  };

  // Who slows whom down; figures of RuntimeParams.
  struct Contention {
    double comm_scale = 1.0;
    std::optional<double> interference, comm_interference;  // absent: by the GPU's data
    LinkSharing link_sharing = LinkSharing::kMaxMin;
    double gather_skew = 0;
  };

  std::string name;
  absl::string_view base() const;  // of it what is before the first `+`: whose runs tell of it
  std::string description;
  FrameworkLimits limits;           // what searches may try
  std::string lineage;              // whose runs tell of one another: `megatron`, `pytorch`
  bool from_documentation = false;  // not read from the framework's source: less sure

  // --- structure (read by the compiler) ---
  Kernels kernels;
  Calls calls;
  Types types;
  // What a forecast asks for, whatever `types` say; For() carries it out.
  Precision precision;
  Tensors tensors;
  Update update;
  DataParallel data_parallel;
  Pipeline pipeline;
  Experts experts;
  Recomputation recompute;

  // How attention works over cp ranks, where the strategy says nothing.
  CpType context_parallel = CpType::kRingZigzag;

  // --- runtime (handed to the executor as RuntimeParams) ---
  Host host;
  Contention contention;
  MemoryOverhead memory;

  // Captures these parts of layers as CUDA graphs: `attn+moe_router`. One that the profile does
  // not know is refused with the list.
  absl::Status Capture(absl::string_view scopes);

  // Whether the products of op `name` (`mlp.fc1`) run in the 8- or 4-bit type of the
  // model.
  bool Quantizes(absl::string_view name) const;

  // Types as they hold for a model in `dtype`. Of 8- and 4-bit floats as parameters, or
  // on the wire of their gathers, only matrices of products make use.
  DType ParamType(DType dtype) const;
  DType GatherType(DType dtype) const;
  // Of the optimizer's own copy of the parameters; absent: it has none.
  std::optional<DType> MasterType(DType dtype) const;
  DType SecondStateType() const { return types.second_state_dtype.value_or(types.state_dtype); }

  // The profile as it holds for a model in `dtype` under `schedule`: fields that depend on either
  // (such as `fusions_16bit`) and `precision` carried out, `compute` types replaced.
  SoftwareProfile For(DType dtype, Schedule schedule) const;

  // Name and structural fields: profiles with equal keys compile plans alike (memo key). Of what
  // `For` has settled, and nobody changes, it is kept, so no later field may be changed then.
  std::string StructureKey() const;
  std::string settled_key;  // empty: not known

  // `vocab` as this framework lays it out for `tp` ranks.
  int64_t PaddedVocab(int64_t vocab, int64_t tp) const;
};

// A shipped one, or one with additions: `megatron-core`, `deepspeed+liger+flash-attention-3`.
absl::StatusOr<SoftwareProfile> FindSoftwareProfile(absl::string_view name);
std::vector<std::string> SoftwareProfileNames();
// A profile of the user's own, as in strategy/data. `what` names it in errors, usually its path.
absl::StatusOr<SoftwareProfile> ParseSoftwareProfile(absl::string_view text,
                                                     absl::string_view what);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SOFTWARE_PROFILE_H_
