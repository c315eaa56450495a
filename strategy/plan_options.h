#ifndef PLANCAST_STRATEGY_PLAN_OPTIONS_H_
#define PLANCAST_STRATEGY_PLAN_OPTIONS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "base/memo_key.h"
#include "graph/model/model_cut.h"
#include "strategy/context_parallel.h"
#include "strategy/schedule/schedule.h"
#include "strategy/schedule/schedule_table.h"

namespace plancast {

// Named as in the strategy language.
enum class Recompute : uint8_t { kNone, kSelective, kFull };
inline constexpr auto kRecomputeNames = NamesOf<Recompute>("none", "selective", "full");
enum class Offload : uint8_t { kOptimizer, kParameters, kActivations };
inline constexpr auto kOffloadNames = NamesOf<Offload>("optimizer", "param", "activations");
enum class Attention : uint8_t { kFlash, kUnfused };
inline constexpr auto kAttentionNames = NamesOf<Attention>("flash", "unfused");
enum class Overlap : uint8_t { kGrad, kParam, kTp, kCp, kEp };
inline constexpr auto kOverlapNames = NamesOf<Overlap>("grad", "param", "tp", "cp", "ep");
// When weights are updated (docs/schedules.md): behind all gradients of the plan; each stage
// behind its own and those before it, while others still go back; or bucket by bucket during the
// last backward pass.
enum class StepTime : uint8_t { kAtEnd, kPostValidated, kInBackward };
inline constexpr auto kStepTimeNames = NamesOf<StepTime>("at-end", "post-validated", "in-backward");

// Who holds the embedding's table and the output layer with the loss (docs/schedules.md): the first
// and the last stage; or all stages a part of the vocabulary each, and these work on a micro-batch
// together, at once, or in passes of their own between which results are summed beside other work.
enum class VocabParallel : uint8_t { kEnds, kInterlaced, kVocab1, kVocab2 };
inline constexpr auto kVocabParallelNames =
    NamesOf<VocabParallel>("ends", "interlaced", "vocab1", "vocab2");

// A pipeline stage with devices and a mesh of its own.
struct StageOptions {
  int64_t dp = 1, tp = 1, cp = 1, ep = 1, etp = 0;  // as in PlanOptions
  int64_t micro_batch = 1;
  int64_t first_device = 0;  // its devices follow one another from here

  PLANCAST_KEY_FIELDS(StageOptions, dp, tp, cp, ep, etp, micro_batch, first_device)

  int64_t devices() const { return dp * tp * cp; }
};

// Devices of the machine that no stage has.
struct IdleDevices {
  int64_t first_device = 0, devices = 0;

  PLANCAST_KEY_FIELDS(IdleDevices, first_device, devices)
};

// The directives of the tree's root that concern the whole plan, after
// defaults were filled in and checked against model, machine and batch: what
// the compiler needs. Nothing optional is left open.
struct PlanOptions {
  int64_t dp = 1, tp = 1, pp = 1, vpp = 1, cp = 1;
  CpType cp_type = CpType::kRingZigzag;
  int64_t cp_head_ranks = 0;  // of CpType::kHybrid
  // Experts are cut over ep ranks, and each over etp; ep·etp divides dp·cp·tp. With
  // ep=1 and etp=tp they are laid out as all else.
  int64_t ep = 1, etp = 0;  // etp 0: tp

  int64_t expert_tp() const { return etp == 0 ? tp : etp; }
  bool has_expert_mesh() const { return ep > 1 || expert_tp() != tp; }
  bool sp = false;
  // Sharded data parallelism: what is sharded (1: optimizer state, 2: and gradients,
  // 3: and parameters), over how many ranks of dp (times cp); the rest of dp are
  // replicas of the shard group. 0: all of dp.
  // Nodes of the tree may say otherwise (homes.h): `node_zero` is the most that one shards.
  int zero = 0, node_zero = 0;
  int most_zero() const { return std::max(zero, node_zero); }
  int64_t hsdp = 0;
  int64_t shard_ranks() const { return (hsdp == 0 ? dp : hsdp) * cp; }
  int64_t replicas() const { return hsdp == 0 ? 1 : dp / hsdp; }
  // With zero=3: gathered parameters are given up after the forward pass, and stay
  // sharded over `reshard_ranks` ranks then (0: the whole shard group).
  bool reshard = true;
  int64_t reshard_ranks = 0;
  int64_t prefetch = 1;  // units whose parameters are gathered ahead
  // Neighbouring layers of a list that are one unit, where no node says otherwise (shard_units.h).
  int64_t unit_layers = 1;
  // Gradients are reduced in every micro-batch; else they are kept and reduced in the last.
  // Those that are sharded, and those that are whole afterwards.
  bool sync_each = false, sync_whole_each = false;
  int64_t micro_batch = 1;
  int64_t micro_batches = 1;  // per data-parallel rank and iteration
  Schedule schedule = Schedule::kNone;
  // Of Schedule::kTable (schedule_table.h), checked; of a schedule that follows from times the
  // order that was found, once it is.
  std::string schedule_table;
  // Of each stage, how many micro-batches may be forward and not yet back, where the schedule's
  // rule asks for it (BoundsOngoing); empty: any number.
  std::vector<int64_t> most_ongoing;
  // What a search may keep on a stage: so many times the activations of as many micro-batches as
  // there are stages, which is what 1f1b keeps on the first. 0: what its devices have.
  double search_memory = 0;
  // Whether gradients of weights are a pass of their own.
  bool splits_backward() const { return SplitsBackward(schedule) || ListsWeights(schedule_table); }
  // Whether some forward passes run as pairs with backward passes (ScheduleStep::pairs).
  bool makes_pairs() const { return overlap.count(Overlap::kEp) > 0 || ListsPairs(schedule_table); }
  VocabParallel vocab_parallel = VocabParallel::kEnds;
  bool spreads_vocabulary() const { return vocab_parallel != VocabParallel::kEnds; }
  // Of the output layer, gradients of weights are a pass of their own.
  bool splits_output() const { return vocab_parallel == VocabParallel::kVocab2; }
  Recompute recompute = Recompute::kNone;
  int64_t recompute_layers = -1;  // full:N recomputes the first N layers of a stage; -1: all
  int64_t recompute_every =
      0;  // every:N recomputes layers N-1, 2N-1, ... of a stage, from 0; 0: all
  int64_t recompute_joined = 1;            // uniform:N: so many layers run again together
  std::vector<std::string> recompute_ops;  // selective: which sets of ops; empty: the profile's
  bool norms_in_products = false;          // SoftwareProfile::Recomputation
  bool recomputes_some_layers() const { return recompute_layers >= 0 || recompute_every > 0; }
  // Runs of layers are not those of the layout alone.
  bool regroups_layers() const {
    return recomputes_some_layers() || recompute_joined > 1 || unit_layers > 1;
  }
  std::set<Offload> offload;    // what lives in host memory
  int64_t offload_layers = -1;  // activations of the first N layers of a stage; -1: all
  Attention attention = Attention::kFlash;
  std::set<Overlap> overlap;
  int64_t bucket_bytes = 25'000'000;
  int64_t first_bucket_bytes = 0;  // of the first bucket of a pass; 0: as the others
  StepTime optimizer = StepTime::kAtEnd;
  // Layers of each virtual stage, in model order: pp * vpp entries; where each runs is the
  // schedule's (stage_placement.h).
  std::vector<int64_t> layout;
  // In its place where stages are cut elsewhere than between layers: where each virtual stage but
  // the first begins.
  std::vector<ModelCut> cuts;
  // Fastest axis first: `tp-cp-ep-dp-pp`.
  std::vector<std::string> order = {"tp", "cp", "ep", "dp", "pp"};
  // Of each pipeline stage, what it has of its own; empty: stages are alike. The fields above are
  // those of the first stage then.
  std::vector<StageOptions> stages;
  std::vector<IdleDevices> idle;  // beside those
  // Of such a plan the stages that are written from it: what others hold need not fit this mesh.
  // Empty: all.
  std::vector<int64_t> own_stages;
  bool Writes(int64_t stage) const {
    return own_stages.empty() || std::count(own_stages.begin(), own_stages.end(), stage) > 0;
  }
  // A plan whose stages are all as stage `stage` is.
  PlanOptions OfStage(int64_t stage) const {
    PlanOptions options = *this;
    if (stages.empty()) return options;
    const StageOptions& own = stages[stage];
    options.dp = own.dp, options.tp = own.tp, options.cp = own.cp;
    options.ep = own.ep, options.etp = own.etp;
    options.micro_batch = own.micro_batch;
    options.stages.clear();
    options.idle.clear();
    return options;
  }

  PLANCAST_KEY_FIELDS(PlanOptions, dp, tp, pp, vpp, cp, cp_type, cp_head_ranks, ep, etp, sp, zero,
                      node_zero, hsdp, reshard, reshard_ranks, prefetch, unit_layers, sync_each,
                      sync_whole_each, micro_batch, micro_batches, schedule, schedule_table,
                      most_ongoing, search_memory, vocab_parallel, recompute, recompute_layers,
                      recompute_every, recompute_joined, recompute_ops, norms_in_products, offload,
                      offload_layers, attention, overlap, bucket_bytes, first_bucket_bytes,
                      optimizer, layout, cuts, order, stages, idle, own_stages)
};

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_PLAN_OPTIONS_H_
