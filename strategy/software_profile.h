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
#include "cluster/link_sharing.h"
#include "graph/dtype.h"
#include "graph/execution/memory_overhead.h"
#include "strategy/framework_limits.h"
#include "strategy/plan_options.h"
#include "strategy/precision.h"

namespace plancast {

// How parameters are cut into shards: each flat, all of a unit flat in one (FSDP1), or
// each by rows (FSDP2).
enum class ShardCut : uint8_t { kParameter, kUnit, kRows };

// How a framework runs a plan: data (strategy/data/*.textproto), never code.
// proto/software_profile.proto documents every field, the data files the source
// of every figure.
struct SoftwareProfile {
  // Kernels beside an op's own; proto AroundOp documents them.
  struct Around {
    int forward_passes = 0, backward_passes = 0;
    bool fp32 = false;
    int forward_casts = 0, backward_casts = 0;
    int metrics = 0;
  };

  // Tensors of an op beside those of its rule; proto OpMemory documents them.
  struct ExtraTensor {
    std::string name, like;
    double element_bytes = 0;
    int64_t min_samples = 0;
    bool shared = false, early = false, each_sample = false, gathered = false;
  };
  struct OpMemory {
    std::vector<ExtraTensor> keeps, forward, backward, held;
    std::set<std::string> drops, holds;
  };

  std::string name;
  std::string description;
  FrameworkLimits limits;  // what searches may try

  // --- structure (read by the compiler) ---
  std::set<std::string> fusions;              // op fusion labels that run as one kernel
  std::set<std::string> fusions_16bit;        // more of them where products run in 16 bits
  std::set<std::string> eager;                // rules that run one kernel per arithmetic operation
  std::set<std::string> separate_products;    // rules that run one product for each weight
  std::map<std::string, Around> around;       // by rule
  std::map<std::string, OpMemory> op_memory;  // by rule
  int64_t workspace_bytes = 0;                // of the allocator, kept by libraries
  std::set<std::string> whole_rules;          // not cut over tp
  Attention default_attention = Attention::kFlash;
  std::string attention_kernel;       // of fused attention; empty: the GPU's best
  int64_t vocab_pad_multiple = 128;   // times tp; 0: not padded
  DType grad_dtype = DType::kFp32;    // main gradient buffer, accumulated by wgrad
  DType reduce_dtype = DType::kFp32;  // wire type of the gradient reduction
  // Of gradients as the optimizer reads them, copied while it runs; absent: grad_dtype.
  std::optional<DType> main_grad_dtype;
  DType param_dtype = DType::kCompute;      // parameters at rest
  std::optional<DType> gather_dtype;        // wire type of parameter gathers; absent: param_dtype
  bool master_weights = true;               // another copy of parameters that are not fp32
  DType master_dtype = DType::kFp32;        // its type
  DType state_dtype = DType::kFp32;         // each of Adam's two moments
  std::optional<DType> second_state_dtype;  // the second moment's, where it is another
  bool grad_clip = true;                    // gradient norm, its all-reduce, scaling
  bool foreach_optimizer = false;           // one pass for each operation of Adam
  bool fp16_overflow_check = false;         // one more pass over gradients, for fp16 only
  int64_t offload_least_bytes = 2 << 20;    // of a tensor that offload=activations moves
  bool zero_grad = true;                    // gradient buffer cleared each iteration
  bool fresh_gradients = false;             // made by backward passes, given up by the optimizer
  // The wgrad GEMM adds into the main gradient; else a separate add.
  bool fuse_wgrad_accumulation = true;
  bool wgrad_overlaps_tp = true;      // tp collective of dgrad hidden behind wgrad
  bool sp_saves_sharded = true;       // saves stay Shard(seq), second all-gather in backward
  bool p2p_scatter_gather = false;    // each tp rank sends 1/tp, receiver gathers (without sp)
  bool p2p_blocking = false;          // compute waits for the send as well
  bool p2p_host_sync = false;         // the host waits for every point-to-point batch
  std::set<Overlap> default_overlap;  // used where the strategy says nothing
  int64_t bucket_bytes = 25'000'000;
  bool reduce_last_micro_batch_only = true;
  bool dropout = true;                    // model trains with dropout kernels
  bool bf16_gradients_in_fp32 = false;    // whatever grad_dtype and reduce_dtype say
  bool interleaved_p2p_overlaps = false;  // whatever p2p_blocking and p2p_host_sync say
  // In 8 or 4 bits: activations of products are gathered and kept in that type.
  bool quantized_activations = false;
  bool quantized_gathers = false;      // only gathered in that type, with one scale a tensor
  bool reduces_each_product = false;   // of separate_products: gradients of the input, over tp
  bool first_dim_collectives = false;  // over tp; copies put parts of other dims in order
  bool repeats_kv = false;             // keys and values copied for each query head
  // Sets of ops that plain `recompute=selective` stands for (recompute_set.h).
  std::vector<std::string> selective_recompute = {"core_attn"};
  bool replays_only_needed = false;        // nothing whose result no gradient reads
  bool keeps_unread = false;               // a set's kept results, though no gradient reads them
  std::set<std::string> unquantized;       // products in 16 bits: last part of an op's name
  bool experts_weigh_activations = false;  // tokens' weights go to their experts
  bool experts_sort_tokens = false;        // with ep: kernels order tokens by expert
  bool dispatch_sends_once = false;        // one copy of a token to each node and device
  ShardCut shard_cut = ShardCut::kParameter;
  bool sharded_master = false;   // with zero=3 parameters at rest are the fp32 master's shard
  bool root_unit = false;        // modules outside of lists are gathered as one unit, at first
  bool keeps_last_unit = false;  // what follows the last list stays gathered for its backward
  // With pipelines, where the strategy says nothing.
  bool pipelines_reshard = true, pipelines_sync_each = true;

  // Whether the products of op `name` (`mlp.fc1`) run in the 8- or 4-bit type of the
  // model.
  bool Quantizes(absl::string_view name) const;

  // What a forecast asks for, whatever the fields above say; For() carries it out.
  Precision precision;

  // Types as they hold for a model in `dtype`. Of 8- and 4-bit floats as parameters, or
  // on the wire of their gathers, only matrices of products make use.
  DType ParamType(DType dtype) const;
  DType GatherType(DType dtype) const;
  // Of the optimizer's own copy of the parameters; absent: it has none.
  std::optional<DType> MasterType(DType dtype) const;
  DType SecondStateType() const { return second_state_dtype.value_or(state_dtype); }

  // --- runtime (handed to the executor as RuntimeParams) ---
  double launch_s = 0;
  double host_sync_s = 0;
  bool cuda_graphs = false;
  double graph_launch_s = 0;
  double iteration_s = 0;
  double comm_scale = 1.0;
  std::optional<double> interference, comm_interference;  // absent: by the GPU's data
  LinkSharing link_sharing = LinkSharing::kMaxMin;
  MemoryOverhead memory;

  // --- how sure ---
  bool known_in_outline = false;  // not read from the framework's source

  // The profile as it holds for a model in `dtype` under `schedule`: the last two
  // structural fields, `fusions_16bit` and `precision` carried out, `compute` types
  // replaced.
  SoftwareProfile For(DType dtype, Schedule schedule) const;

  // StructureKey of what `For` has settled, and nobody changes; empty: not known.
  std::string settled_key;

  // Name and structural fields as text: profiles with equal keys compile plans
  // alike (memo key).
  std::string StructureKey() const;

  // `vocab` as this framework lays it out for `tp` ranks.
  int64_t PaddedVocab(int64_t vocab, int64_t tp) const;
};

// `megatron-2021`, `megatron-core`, ...; unknown: the list and a suggestion.
absl::StatusOr<SoftwareProfile> FindSoftwareProfile(absl::string_view name);
std::vector<std::string> SoftwareProfileNames();
// A profile of the user's own, in the format of strategy/data. `what` names the
// input in errors, usually its path.
absl::StatusOr<SoftwareProfile> ParseSoftwareProfile(absl::string_view text,
                                                     absl::string_view what);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SOFTWARE_PROFILE_H_
