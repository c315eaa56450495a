#include "tests/planner/language/random_job.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "compiler/finetune/adapter.h"
#include "compiler/schedule/pair_steps.h"
#include "tests/compiler/folded_against_reference.h"
#include "tests/compiler/random_graph.h"
#include "tests/compiler/random_homes.h"
#include "tests/executor/mixed_machine.h"
#include "tests/planner/language/random_knobs.h"
#include "tests/planner/language/random_pieces.h"
#include "tests/planner/language/random_profile.h"
#include "tests/planner/language/random_stages.h"
#include "tests/strategy/schedule/random_table.h"

namespace plancast {
namespace {

using Sizes = std::vector<int64_t>;
using Texts = std::vector<std::string>;

class Drawing {
 public:
  Drawing(uint32_t seed, int64_t micro_batches)
      : dice_(seed), seed_(seed), micro_batches_(micro_batches) {}

  RandomJob Draw() {
    out_.job.profile = PlainProfile();
    DrawMesh();
    spreads_ = seed_ % 12 == 7 && pp_ > 1 && !own_ && vpp_ == 1;
    DrawProfile(dice_, &profile());
    Dice kept(seed_ ^ 0x5bd1e995U);  // of its own: the rest is drawn as without
    DrawKept(kept, &profile(), &out_.job.dtype);
    if (dice_.Maybe(3)) plan().attn = "unfused";
    DrawModel();
    if (spreads_) return DrawSpreadVocabulary();
    DrawStages();
    DrawPlan();
    if (!out_.rules.empty() && dice_.Maybe(2)) Split("");
    for (int64_t nodes = dice_.Of<int64_t>({0, 0, 1, 1, 2, 3}); nodes > 0; --nodes) DrawNode();
    DrawLoad();
    DrawMachineAndHost();
    DrawUnits(dice_, graph_, &tree());
    if (dice_.Maybe(3)) DrawPieces(dice_, graph_, &tree());
    if (seed_ % 8 == 3 && pp_ > 1) DrawUnusualPipeline();
    return std::move(out_);
  }

 private:
  StrategyTree& tree() { return out_.job.strategy; }
  ShortForm& plan() { return out_.job.strategy.plan(); }
  SoftwareProfile& profile() { return out_.job.profile; }
  Directives& Node(const std::string& path) { return *tree().Node(path).value(); }

  // The devices of all stages, and how each has them.
  void DrawMesh() {
    pp_ = dice_.Of<int64_t>({1, 1, 2, 2, 3});
    vpp_ = pp_ > 1 && dice_.Maybe(4) ? 2 : 1;
    own_ = pp_ > 1 && dice_.Maybe(2);
    if (!own_) {
      dp_ = {dice_.Of<int64_t>({1, 2, 2, 3, 4, 6})};
      tp_ = {pp_ > 1 ? dice_.Of<int64_t>({1, 2}) : dice_.Of<int64_t>({1, 2, 4})};
      micro_batch_ = dice_.Of<int64_t>({1, 1, 2});
      out_.samples = micro_batch_ * dp_[0];
      out_.devices = dp_[0] * tp_[0] * pp_;
      return;
    }
    out_.devices = 0;
    out_.samples = 1;
    for (int64_t stage = 0; stage < pp_; ++stage) {
      dp_.push_back(dice_.Of<int64_t>({1, 2, 3}));
      tp_.push_back(dice_.Of<int64_t>({1, 1, 2, 4}));
      out_.devices += dp_.back() * tp_.back();
      out_.samples = std::lcm(out_.samples, dp_.back());
    }
    micro_batch_ = out_.samples / dp_[0];
  }

  void DrawModel() {
    layers_ = std::max<int64_t>(2, pp_ * vpp_ * dice_.Of<int64_t>({1, 1, 2}));
    if (!spreads_ && dice_.Maybe(4)) {
      // One op after the other, seed by seed, beside others.
      const Texts& all = TrainableRules();
      out_.rules = {all[seed_ % all.size()]};
      for (int64_t more = dice_.Below(3); more > 0; --more) out_.rules.push_back(dice_.Of(all));
      std::mt19937 random(seed_);
      graph_ = RandomGraph(out_.rules, layers_, random);
      out_.job.model = *GraphSource(graph_);
      return;
    }
    const absl::StatusOr<std::shared_ptr<const ModelSource>> source = TransformerSource(Config());
    PLANCAST_CHECK_OK(source);
    out_.job.model = *source;
    GraphChoices choices;
    choices.attention = plan().attn.has_value() ? Attention::kUnfused : Attention::kFlash;
    choices.dropout = profile().kernels.dropout;
    choices.experts_weigh_activations = profile().experts.weigh_activations;
    graph_ = *(*source)->Draw(choices);
  }

  TransformerConfig Config() {
    TransformerConfig config;
    config.name = "tiny";
    config.layers = layers_;
    config.hidden = 32, config.heads = 4;
    config.kv_heads = dice_.Of<int64_t>({1, 2, 4, 4});
    config.head_dim = 8;
    config.ffn = 48;
    config.vocab = 96;
    config.seq = 16;
    config.max_positions = 16;
    config.tied_embeddings = dice_.Maybe(4);
    config.parallel_residual = dice_.Maybe(5);
    routed_ = dice_.Maybe(3);
    if (routed_) {
      config.experts.count = 12, config.experts.topk = 3;
      if (seed_ % 2 == 1) config.experts.groups = 4, config.experts.groups_per_token = 2;
      config.experts.ffn = 24;
      config.experts.shared = config.parallel_residual ? 0 : dice_.Of<int64_t>({0, 1});
      config.experts.normalized = dice_.Maybe(2);
      if (dice_.Maybe(3)) config.experts.score = RouterScore::kSigmoid;
      config.experts.dense_layers = dice_.Of<int64_t>({0, 0, 1});
      config.experts.every = dice_.Of<int64_t>({1, 1, 2});
    }
    if (!spreads_ && seed_ % 5 == 3) {  // of all layers, the last are of multi-token prediction
      config.mtp_layers = layers_ > 2 ? 2 : 1;
      config.layers -= config.mtp_layers;
      config.experts.dense_layers = std::min(config.experts.dense_layers, config.layers);
      config.experts.every = std::min(config.experts.every, config.layers);
    }
    if (dice_.Maybe(2)) config.mlp = Mlp::kSwiglu;
    if (dice_.Maybe(3)) {
      config.window = 6;
      config.window_pattern = dice_.Of<std::string>({"", "wf", "wwf"});
      config.attention_sinks = dice_.Maybe(3);
    } else if (dice_.Maybe(5)) {
      config.position = Position::kRope;
      config.kv_heads = config.heads;
      config.latent = {dice_.Of<int64_t>({0, 12}), 10, 8, 4, 6};
    }
    return config;
  }

  // All stages hold a part of the vocabulary, with what goes with that (plan_conflicts.h).
  RandomJob DrawSpreadVocabulary() {
    profile().update.fresh_gradients = false;
    DrawPlan();
    ShortForm& form = plan();
    form.vocab_parallel = dice_.Of<std::string>({"vocab1", "vocab2", "interlaced"});
    form.schedule.reset();
    const bool turns = form.vocab_parallel != "interlaced" && seed_ % 24 == 7;
    if (turns) form.schedule = seed_ % 48 == 7 ? "zbvhalf" : "zbvmin";
    form.sync.reset();
    form.optimizer.reset();
    form.offload.clear();
    form.offload_layers.reset();
    if (dice_.Maybe(2)) form.zero = dice_.Of<int64_t>({2, 3});
    if (form.recompute == "uniform") form.recompute = "every";
    DrawLoad();
    DrawMachineAndHost();
    return std::move(out_);
  }

  // What stages hold, and where they are.
  void DrawStages() {
    if (!own_ && (pp_ == 1 || !dice_.Maybe(3))) return;
    const std::vector<ModelCut> begins =
        DrawStageBegins(dice_, graph_, pp_ * vpp_ - 1, /*inside=*/dice_.Maybe(2));
    std::vector<StageNodes> stages(begins.size() + 1);
    for (size_t v = 0; v < stages.size(); ++v) {
      stages[v].nodes = NodesBetween(graph_, v == 0 ? ModelCut() : begins[v - 1],
                                     v < begins.size() ? begins[v] : EndOf(graph_));
    }
    if (own_) DrawPlaces(stages);
    // A stage without work is refused here already.
    (void)tree().SetStages(std::move(stages));
  }

  void DrawPlaces(std::vector<StageNodes>& stages) {
    Sizes order(pp_);
    std::iota(order.begin(), order.end(), 0);
    const bool said = dice_.Maybe(2);
    if (said) std::swap(order[0], order[dice_.Below(pp_)]);
    int64_t first = 0;
    for (const int64_t stage : order) {
      if (stage >= static_cast<int64_t>(stages.size())) continue;
      StageMeshSpec& place = stages[stage].place;
      place.mesh = {{"dp", dp_[stage]}, {"tp", tp_[stage]}};
      const int64_t devices = dp_[stage] * tp_[stage];
      if (said) place.devices = DeviceRange{false, first, first + devices - 1};
      if (routed_ && dice_.Maybe(3)) place.mesh["ep"] = dice_.Of<int64_t>({1, devices});
      if (dice_.Maybe(4)) place.micro_batch = out_.samples / dp_[stage];
      first += devices;
    }
  }

  void DrawPlan() {
    ShortForm& form = plan();
    if (!own_) {
      form.dp = dp_[0];
      form.tp = tp_[0];
      form.pp = pp_;
    }
    if (!own_ && out_.rules.empty() && dice_.Maybe(4)) {
      out_.devices *= *(form.cp = dice_.Of<int64_t>({2, 2, 4}));
      const Texts all = {"ring", "ring_zigzag", "allgather", "ulysses", "hybrid:2"};
      if (dice_.Below(4) > 0) form.cp_type = dice_.Of(all);
    }
    if (vpp_ > 1) form.vpp = vpp_;
    form.mb = micro_batch_;
    const int64_t micro_batches =
        micro_batches_ > 0 ? micro_batches_ : dice_.Of<int64_t>({1, 2, 2, 3, 4});
    out_.job.global_batch = out_.samples * micro_batches;
    form.sp = out_.rules.empty() && dice_.Maybe(3);
    if (routed_ && dice_.Maybe(2)) form.ep = dice_.Of<int64_t>({2, 3, 4, 6});
    if (routed_ && dice_.Maybe(3)) form.etp = 1;
    if (pp_ > 1 && dice_.Maybe(2)) DrawSchedule(form, micro_batches);
    DrawSharding(dice_, &form);
    DrawRecompute(dice_, &form);
    if (dice_.Maybe(3)) form.overlap = dice_.Of<Texts>({{"grad"}, {"grad", "param"}, {"tp"}});
    if (dice_.Maybe(2)) form.bucket_bytes = dice_.Of<int64_t>({1, 5'000, 1 << 24});
    if (form.bucket_bytes == 5'000) profile().data_parallel.first_bucket_bytes = 1'000;
    if (dice_.Maybe(5)) {
      form.offload = dice_.Of<Texts>({{"optimizer"}, {"activations"}, {"optimizer", "param"}});
      if (form.offload[0] == "activations" && dice_.Maybe(2)) form.offload_layers = 1;
    }
    if (!own_ && dice_.Maybe(6)) {
      form.order =
          dice_.Of<Texts>({{"dp", "tp", "cp", "ep", "pp"}, {"pp", "tp", "cp", "ep", "dp"}});
    }
    if (!own_ && !spreads_ && dice_.Maybe(6)) DrawPairs(form);
  }

  // Passes that run in pairs, and what goes with that (plan_conflicts.h).
  void DrawPairs(ShortForm& form) {
    if (form.schedule.has_value() && LooksLikeScheduleTable(*form.schedule)) {
      const ScheduleTable table = *ParseScheduleTable(*form.schedule);
      form.schedule =
          PrintScheduleTable(WithPairs(table, *StagePlacement::Parse(table.placement, pp_, vpp_)));
    } else if (routed_) {
      form.ep = dice_.Of<int64_t>({2, 3});
      form.overlap.push_back("ep");
    }
    if (dice_.Maybe(2)) form.zero = dice_.Of<int64_t>({2, 3});
    form.offload.erase(std::remove(form.offload.begin(), form.offload.end(), "activations"),
                       form.offload.end());
    form.offload_layers.reset();
  }

  void DrawSchedule(ShortForm& form, int64_t micro_batches) {
    if (dice_.Maybe(2)) {
      std::mt19937 random(seed_);
      const ScheduleShape shape{pp_, micro_batches, vpp_};
      const std::string placement = !own_ && dice_.Maybe(2) ? RandomPlacement(shape, random) : "";
      form.schedule = PrintScheduleTable(RandomTable(shape, random, dice_.Maybe(2), placement));
    } else if (vpp_ > 1) {
      const Texts all = {"breadth-first", "zbv", "zbvhalf", "zbvmin", "dualpipev", "hanayo"};
      form.schedule = own_ ? all[0] : dice_.Of(all);
    } else if (!own_ && pp_ % 2 == 0 && micro_batches > 1 && dice_.Maybe(3)) {
      form.schedule = dice_.Of<std::string>({"dualpipe", "chimera", "chimera"});
    } else {
      form.schedule = dice_.Of<std::string>({"gpipe", "eager-1f1b", "zbh1", "zb1p", "zb2p"});
    }
  }

  // Orders with W apart, of layers that turn back or of two copies, beside activations that leave
  // their device or nodes on some ranks.
  void DrawUnusualPipeline() {
    ShortForm& form = plan();
    if (own_ && vpp_ > 1) return;
    form.schedule = vpp_ > 1 ? dice_.Of<std::string>({"zbv", "zbvhalf", "hanayo", "dualpipev"})
                    : own_ || pp_ % 2 != 0
                        ? dice_.Of<std::string>({"zbh1", "zb2p"})
                        : dice_.Of<std::string>({"zbh1", "zb2p", "dualpipe", "chimera"});
    profile().update.fresh_gradients = false;
    if (dice_.Maybe(3)) {
      form.offload = {"activations"};
    } else if (own_ || dice_.Maybe(2)) {
      const Texts homes = {"host", "shard(tp)", "shard(tp)+host", "on(pp=0)"};
      Node("layers.*").home[HomeKind::kActivations] =
          *ParseHome(HomeKind::kActivations, dice_.Of(homes));
    } else {
      On(Path());
    }
  }

  // A node of the tree, and what it says: one of these.
  void DrawNode() {
    using Directive = void (Drawing::*)(const std::string& path);
    constexpr std::array<Directive, 10> kDirectives = {
        &Drawing::Split, &Drawing::Split,         &Drawing::Levels, &Drawing::On,
        &Drawing::On,    &Drawing::Recomputation, &Drawing::Homes,  &Drawing::Homes,
        &Drawing::Train, &Drawing::Lora};
    (this->*kDirectives[dice_.Below(kDirectives.size())])(Path());
  }

  std::string Path() {
    const Segment& segment = graph_.segments[dice_.Below(graph_.segments.size())];
    std::string path = segment.path;
    if (segment.in_list()) {
      path += dice_.Of<std::string>({".*", ".*", "[::2]", "[1:]", "[:1]", "[-1]", ".0",
                                     absl::StrCat("[", layers_ / 2, ":]")});
    }
    if (!out_.rules.empty() || !dice_.Maybe(2)) return path;
    const std::string& op = graph_.bodies[segment.body].ops[0].name;
    if (segment.in_list()) return path + dice_.Of<std::string>({".attn", ".mlp"});
    return dice_.Maybe(2) ? absl::StrCat(path, ".", op) : path;
  }

  // Of graphs of any ops, factors that divide on all stages, op by op.
  void Split(const std::string& path) {
    out_.cuts_by_hand = true;
    if (!out_.rules.empty()) return SplitAnyOps();
    const std::string axis = dice_.Maybe(4) ? "dp" : "tp";
    Node(path).SetSplit(
        {axis, axis == "dp"
                   ? Texts{"batch"}
                   : dice_.Of<Texts>({{}, {"seq"}, {"heads", "seq"}, {"ffn"}, {"hidden"}})});
  }

  // Hierarchies of the model's axes, of all of it or below a node.
  void Levels(const std::string& path) {
    const std::string where = dice_.Maybe(2) ? "" : path;
    const std::string axis = dice_.Maybe(4) ? "dp" : "tp";
    const Texts entries = axis == "dp" ? dice_.Of<Texts>({{"batch/2", "seq/2"}, {"batch", "/1"}})
                                       : dice_.Of<Texts>({{"heads|ffn|vocab", "seq/2"},
                                                          {"heads|ffn/2", "seq"},
                                                          {"seq/2", "heads|ffn|vocab"},
                                                          {"heads|ffn|vocab", "/2"}});
    out_.cuts_by_hand = true;
    const absl::StatusOr<SplitDirective> split = SplitDirective::Parse(axis, entries);
    PLANCAST_CHECK_OK(split);
    Node(where).SetSplit(*split);
  }

  // On some ranks of an axis.
  void On(const std::string& path) {
    const absl::StatusOr<OnDirective> on = ParseOn(dice_.Of<std::string>({"dp", "tp"}),
                                                   dice_.Of<std::string>({"0", "1", "0/2", "1/2"}));
    PLANCAST_CHECK_OK(on);
    Node(path).SetOn(*on);
  }

  void SplitAnyOps() {
    const int64_t dp =
        std::accumulate(dp_.begin(), dp_.end(), int64_t{1}, std::lcm<int64_t, int64_t>);
    const int64_t tp =
        std::accumulate(tp_.begin(), tp_.end(), int64_t{1}, std::lcm<int64_t, int64_t>);
    for (const Segment& segment : graph_.segments) {
      for (const OpNode& op : graph_.bodies[segment.body].ops) {
        std::vector<int64_t> extents;
        for (const int dim : op.factor_dims) {
          extents.push_back(graph_.dims[dim].name == "batch" ? out_.samples
                                                             : graph_.dims[dim].size);
        }
        for (const auto& [axis, size] : {std::pair("dp", dp), std::pair("tp", tp)}) {
          SplitFactor(absl::StrCat(ModelGraph::PathOf(segment), ".", op.name), op, axis, size,
                      extents);
        }
      }
    }
  }

  void SplitFactor(const std::string& path, const OpNode& op, const std::string& axis, int64_t size,
                   std::vector<int64_t>& extents) {
    const size_t factors = extents.size();
    const auto factor = static_cast<size_t>(dice_.Below(static_cast<int64_t>(factors) + 1));
    bool cut = factor < factors && op.rule->may_cut(static_cast<int>(factor));
    // Tied factors are cut together.
    for (size_t f = 0; f < factors && cut; ++f) {
      cut = op.rule->ties()[f] != op.rule->ties()[factor] || extents[f] % size == 0;
    }
    for (size_t f = 0; f < factors && cut; ++f) {
      if (op.rule->ties()[f] == op.rule->ties()[factor]) extents[f] /= size;
    }
    Node(path).SetSplit({axis, cut ? Texts{"." + op.rule->factors()[factor]} : Texts{}});
  }

  void Recomputation(const std::string& path) {
    Node(path).recompute =
        dice_.Of<Recompute>({Recompute::kNone, Recompute::kSelective, Recompute::kFull});
  }

  // Where tensors below live, or how their gradients are bundled.
  void Homes(const std::string& path) {
    if (dice_.Maybe(5)) {
      Node(path).bucket_bytes = dice_.Of<int64_t>({1, 5'000, 1 << 24});
      return;
    }
    const int zero = static_cast<int>(dice_.Below(4));
    const auto say = [&](HomeKind kind, const std::string& home) {
      Node(path).home[kind] = *ParseHome(kind, home);
    };
    if (!own_ && dice_.Maybe(6)) {
      const bool data = dice_.Maybe(2);
      say(dice_.Of<HomeKind>({HomeKind::kWeights, HomeKind::kGradients, HomeKind::kState}),
          absl::StrCat("on(", data ? "dp" : "tp", "=", dice_.Below(data ? dp_[0] : tp_[0]), ")"));
      return;
    }
    if (dice_.Maybe(2)) {
      say(HomeKind::kWeights, zero < 3         ? "replicate"
                              : dice_.Maybe(4) ? "shard(dp)+host"
                                               : "shard(dp)");
    }
    if (dice_.Maybe(2)) say(HomeKind::kGradients, zero < 2 ? "replicate" : "shard(dp)");
    if (dice_.Maybe(2)) {
      say(HomeKind::kState, absl::StrCat(zero == 0        ? (dice_.Maybe(3) ? "host" : "replicate")
                                         : dice_.Maybe(3) ? "shard(dp)+host"
                                                          : "shard(dp)"));
    }
    if (dice_.Maybe(4)) {
      say(HomeKind::kActivations,
          pp_ > 1 && dice_.Maybe(2)
              ? absl::StrCat("on(pp=", dice_.Below(pp_), ")")
              : dice_.Of<std::string>({"device", "host", "shard(tp)", "shard(tp)+host"}));
    }
  }

  void Train(const std::string& path) {
    if (dice_.Maybe(3)) Node("").train = false;
    Node(path).train = Node("").train == false;
  }

  void Lora(const std::string& path) {
    Texts on;
    for (const Segment& segment : graph_.segments) {
      for (const OpNode& op : graph_.bodies[segment.body].ops) {
        const bool known = std::find(on.begin(), on.end(), op.name) != on.end();
        if (!known && AdapterOf(*op.rule).ok() && dice_.Maybe(2)) on.push_back(op.name);
      }
    }
    if (on.empty()) return;
    LoraDirective& lora = Node(dice_.Maybe(3) ? path : "").lora.emplace();
    lora.rank = dice_.Of<int64_t>({1, 4});
    lora.on = on;
    lora.dropout = dice_.Of<double>({0, 0, 0.1});
    lora.base = dice_.Of<std::string>({"", "", "nf4"});
  }

  // Shares of 64, so that products with them are exact.
  void DrawLoad() {
    if (!routed_ || !dice_.Maybe(own_ ? 20 : 3)) return;
    std::vector<double> loads(12, 1);
    for (int i = 12; i < 64; ++i) ++loads[dice_.Below(12)];
    tree().SetLoad("experts", loads);
  }

  void DrawMachineAndHost() {
    const bool mixed = out_.devices > 1 && dice_.Maybe(2);
    out_.machine = mixed ? DrawMixedMachine(seed_, out_.devices) : DrawMachine(dice_, out_.devices);
    out_.host.start_ps = dice_.Of<int64_t>({0, 1000});
    out_.host.launch_ps = dice_.Of<int64_t>({0, 200'000, 2'000'000});
    out_.host.sync_ps = 1'000'000;
    out_.interference = dice_.Of<double>({0, 0.1, 0.3, 0.5});
    out_.comm_interference = dice_.Of<double>({0, 0.05, 0.2});
  }

  Dice dice_;
  const uint32_t seed_;
  const int64_t micro_batches_;
  RandomJob out_;
  ModelGraph graph_;
  int64_t pp_ = 1, vpp_ = 1, layers_ = 2, micro_batch_ = 1;
  bool own_ = false;      // stages have meshes of their own
  bool routed_ = false;   // there are experts
  bool spreads_ = false;  // the vocabulary, over the stages
  Sizes dp_, tp_;         // of each stage, or of all
};

}  // namespace

std::string RandomJob::DebugString() const {
  const SoftwareProfile& p = job.profile;
  return absl::StrCat(job.strategy.ToJson(), " batch ", *job.global_batch, " on ", devices,
                      absl::StrCat(" ", absl::StrJoin(rules, "+")), " cut ",
                      static_cast<int>(p.data_parallel.shard_cut), p.data_parallel.root_unit,
                      p.data_parallel.keeps_last_unit, " blocking ", p.pipeline.p2p_blocking,
                      " sync ", p.pipeline.p2p_host_sync, " scatter ",
                      p.pipeline.p2p_scatter_gather, " clip ", p.update.grad_clip,
                      p.update.zero_grad, p.update.fresh_gradients, " interference ", interference,
                      "/", comm_interference, " launch ", host.launch_ps);
}

RandomJob DrawJob(uint32_t seed, int64_t micro_batches) {
  return Drawing(seed, micro_batches).Draw();
}

}  // namespace plancast
