#include "tests/compiler/plan_under_test.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "compiler/finetune/fine_tune.h"
#include "graph/collective_kind.h"
#include "graph/transformer/transformer.h"

namespace plancast {
namespace {

std::string Text(CollectiveKind kind, absl::string_view axes, int64_t bytes) {
  return absl::StrCat(kCollectiveKindNames[kind], "(", axes, ") ", bytes);
}

void AppendComms(const ExecutionGraph& graph, const Block& block, std::vector<std::string>* out) {
  for (int32_t t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kComm || block.purpose[t] == Purpose::kPp) continue;
    out->push_back(CommText(graph, graph.comms[block.spec[t]]));
  }
}

}  // namespace

std::string AllReduce(absl::string_view axes, int64_t bytes) {
  return Text(CollectiveKind::kAllReduce, axes, bytes);
}
std::string AllGather(absl::string_view axes, int64_t bytes) {
  return Text(CollectiveKind::kAllGather, axes, bytes);
}
std::string ReduceScatter(absl::string_view axes, int64_t bytes) {
  return Text(CollectiveKind::kReduceScatter, axes, bytes);
}
std::string AllToAll(absl::string_view axes, int64_t bytes) {
  return Text(CollectiveKind::kAllToAll, axes, bytes);
}

TransformerConfig SmallGpt() {
  TransformerConfig config;
  config.name = "gpt";
  config.layers = 8;
  config.hidden = 1024;
  config.heads = 16;
  config.kv_heads = 16;
  config.head_dim = 64;
  config.ffn = 4096;
  config.vocab = 4096;
  config.seq = 512;
  config.max_positions = 512;
  config.qkv_bias = config.out_bias = config.mlp_bias = true;
  return config;
}

TransformerConfig SmallLlama() {
  TransformerConfig config = SmallGpt();
  config.norm = Norm::kRmsNorm;
  config.mlp = Mlp::kSwiglu;
  config.position = Position::kRope;
  config.qkv_bias = config.out_bias = config.mlp_bias = false;
  config.ffn = 3072;
  return config;
}

SoftwareProfile PlainProfile() {
  SoftwareProfile profile;
  profile.name = "plain";
  profile.update.grad_clip = false;
  profile.update.zero_grad = false;
  profile.kernels.dropout = false;
  profile.data_parallel.bucket_bytes = int64_t{1} << 50;
  return profile;
}

PlanUnderTest::PlanUnderTest(std::vector<ModelDim> dims) : profile_(PlainProfile()) {
  dims.insert(dims.begin(), {"batch", 0});
  for (const char* name :
       {"seq", "kv_seq", "hidden", "kv_heads", "heads_per_kv", "head_dim", "ffn", "vocab"}) {
    bool known = false;
    for (const ModelDim& dim : dims) known |= dim.name == name;
    if (!known) dims.push_back({name, 1});
  }
  dims_ = std::make_unique<std::vector<ModelDim>>(std::move(dims));
  options_.bucket_bytes = profile_.data_parallel.bucket_bytes;
}

PlanUnderTest PlanUnderTest::Of(const TransformerConfig& config, bool flash, bool dropout) {
  PlanUnderTest plan({});
  TransformerChoices choices;
  choices.flash_attention = flash;
  choices.dropout = dropout;
  absl::StatusOr<ModelGraph> graph = BuildTransformer(config, choices);
  PLANCAST_CHECK_OK(graph);
  plan.graph_ = *std::move(graph);
  return plan;
}

PlanUnderTest PlanUnderTest::Of(ModelGraph graph) {
  PlanUnderTest plan({});
  plan.graph_ = std::move(graph);
  return plan;
}

BodyWriter& PlanUnderTest::Segment(absl::string_view path, int64_t repeat) {
  segments_.push_back({std::string(path), static_cast<int>(writers_.size()), repeat});
  writers_.emplace_back(path, *dims_);
  return writers_.back();
}

PlanUnderTest& PlanUnderTest::Split(absl::string_view path, absl::string_view axis,
                                    const std::vector<std::string>& dims) {
  absl::StatusOr<Directives*> node = tree_.Node(path);
  PLANCAST_CHECK_OK(node);
  const absl::StatusOr<SplitDirective> split = SplitDirective::Parse(axis, dims);
  PLANCAST_CHECK_OK(split);
  (*node)->SetSplit(*split);
  return *this;
}

PlanUnderTest& PlanUnderTest::On(absl::string_view path, absl::string_view axis,
                                 absl::string_view ranks) {
  absl::StatusOr<Directives*> node = tree_.Node(path);
  PLANCAST_CHECK_OK(node);
  const absl::StatusOr<OnDirective> parsed = ParseOn(axis, ranks);
  PLANCAST_CHECK_OK(parsed);
  (*node)->SetOn(*parsed);
  return *this;
}

PlanUnderTest& PlanUnderTest::Home(absl::string_view path, HomeKind kind, absl::string_view home) {
  absl::StatusOr<Directives*> node = tree_.Node(path);
  PLANCAST_CHECK_OK(node);
  const absl::StatusOr<plancast::Home> parsed = ParseHome(kind, home);
  PLANCAST_CHECK_OK(parsed);
  (*node)->home[kind] = *parsed;
  return *this;
}

PlanUnderTest& PlanUnderTest::Shard(absl::string_view path, int zero) {
  const auto home = [&](HomeKind kind, int from) {
    Home(path, kind, zero >= from ? "shard(dp)" : "replicate");
  };
  home(HomeKind::kWeights, 3);
  home(HomeKind::kGradients, 2);
  home(HomeKind::kState, 1);
  return *this;
}

PlanUnderTest& PlanUnderTest::ByHand() { return Split("", "dp", {}).Split("", "tp", {}); }

PlanUnderTest& PlanUnderTest::Dp(int64_t size) {
  options_.dp = size;
  return *this;
}
PlanUnderTest& PlanUnderTest::Tp(int64_t size) {
  options_.tp = size;
  return *this;
}
PlanUnderTest& PlanUnderTest::Cp(int64_t size) {
  options_.cp = size;
  return *this;
}
PlanUnderTest& PlanUnderTest::Cp(int64_t size, absl::string_view type) {
  const auto said = ContextParallel::Parse(type);
  PLANCAST_CHECK_OK(said);
  options_.cp = size;
  options_.cp_type = said->type;
  options_.cp_head_ranks = said->head_ranks;
  tree_.plan().cp = size;
  tree_.plan().cp_type = std::string(type);
  return *this;
}
PlanUnderTest& PlanUnderTest::Pp(int64_t size, Schedule schedule, int64_t vpp) {
  options_.pp = size;
  options_.vpp = vpp;
  options_.schedule = schedule;
  int64_t layers = 0;
  for (const plancast::Segment& segment : graph().segments) {
    if (segment.in_list()) layers += segment.repeat;
  }
  PLANCAST_CHECK_EQ(layers % (size * vpp), 0);
  options_.layout.assign(size * vpp, layers / (size * vpp));
  return *this;
}
PlanUnderTest& PlanUnderTest::Sp() {
  options_.sp = true;
  tree_.plan().sp = true;
  return *this;
}
PlanUnderTest& PlanUnderTest::Ep(int64_t size) {
  options_.ep = size;
  tree_.plan().ep = size;
  return *this;
}
PlanUnderTest& PlanUnderTest::Etp(int64_t size) {
  options_.etp = size;
  tree_.plan().tp = options_.tp;
  tree_.plan().etp = size;
  return *this;
}
PlanUnderTest& PlanUnderTest::Zero1() {
  options_.zero = 1;
  return *this;
}
PlanUnderTest& PlanUnderTest::MicroBatches(int64_t size, int64_t count) {
  options_.micro_batch = size;
  options_.micro_batches = count;
  return *this;
}
PlanUnderTest& PlanUnderTest::Type(DType dtype) {
  dtype_ = dtype;
  return *this;
}

PlanUnderTest& PlanUnderTest::Train(absl::string_view path, bool trains) {
  absl::StatusOr<Directives*> node = tree_.Node(path);
  PLANCAST_CHECK_OK(node);
  (*node)->train = trains;
  return *this;
}
PlanUnderTest& PlanUnderTest::Lora(absl::string_view path, int64_t rank,
                                   std::vector<std::string> on, std::string base) {
  absl::StatusOr<Directives*> node = tree_.Node(path);
  PLANCAST_CHECK_OK(node);
  (*node)->lora = LoraDirective{rank, std::move(on), 0, std::move(base)};
  return *this;
}
PlanUnderTest& PlanUnderTest::FineTune() {
  absl::StatusOr<ModelGraph> tuned = FineTuned(graph(), tree_);
  PLANCAST_CHECK_OK(tuned);
  graph_ = *std::move(tuned);
  return *this;
}
PlanUnderTest& PlanUnderTest::Recomputing(Recompute recompute, int64_t layers) {
  options_.recompute = recompute;
  options_.recompute_layers = layers;
  tree_.plan().recompute = recompute == Recompute::kFull        ? "full"
                           : recompute == Recompute::kSelective ? "selective"
                                                                : "none";
  return *this;
}

const ModelGraph& PlanUnderTest::graph() {
  if (graph_.segments.empty()) {
    graph_.name = "test";
    graph_.dims = *dims_;
    graph_.segments = segments_;
    for (BodyWriter& writer : writers_) graph_.bodies.push_back(writer.Take());
  }
  return graph_;
}

absl::StatusOr<ExecutionGraph> PlanUnderTest::Compile(const PassObserver& observer) {
  Session session;
  return Compile(session, observer);
}

CompileRequest PlanUnderTest::Request() {
  const auto says_homes = [](const auto& node) { return !node.second.home.empty(); };
  if (std::any_of(tree_.nodes().begin(), tree_.nodes().end(), says_homes)) {
    tree_.plan().zero = options_.zero;
    tree_.plan().offload.clear();
    for (const Offload what : options_.offload) {
      tree_.plan().offload.emplace_back(kOffloadNames[what]);
    }
    options_.node_zero = tree_.MostShardedBelow();
  }
  CompileRequest request;
  request.graph = &graph();
  request.tree = &tree_;
  request.options = &options_;
  request.profile = &profile_;
  request.dtype = dtype_;
  return request;
}

absl::StatusOr<ExecutionGraph> PlanUnderTest::Compile(Session& session,
                                                      const PassObserver& observer) {
  absl::StatusOr<ExecutionGraph> compiled = plancast::Compile(Request(), session, observer);
  if (compiled.ok()) {
    if (absl::Status status = compiled->Verify(); !status.ok()) return status;
  }
  return compiled;
}

Moves PlanUnderTest::Traffic() {
  const absl::StatusOr<ExecutionGraph> compiled = Compile();
  PLANCAST_CHECK_OK(compiled);
  return MovesOf(*compiled);
}

std::string CommText(const ExecutionGraph& graph, const CommSpec& comm) {
  return Text(comm.kind,
              absl::StrJoin(comm.axes, "*",
                            [&](std::string* out, int axis) {
                              absl::StrAppend(out, graph.mesh.axis(axis).name);
                            }),
              comm.bytes);
}

Moves MovesOf(const ExecutionGraph& graph) {
  Moves moves;
  std::set<int32_t> seen;
  for (const Program& program : graph.programs) {
    for (const Instance& instance : program.instances) {
      const Block& block = graph.blocks[instance.block];
      const bool body = instance.phase == Phase::kForward || instance.phase == Phase::kBackward;
      if (body && !seen.insert(instance.block).second) continue;
      AppendComms(graph, block,
                  !body                               ? &moves.gradients
                  : instance.phase == Phase::kForward ? &moves.forward
                                                      : &moves.backward);
    }
  }
  return moves;
}

const Block& BlockNamed(const ExecutionGraph& graph, absl::string_view name) {
  for (const Block& block : graph.blocks) {
    if (block.name == name) return block;
  }
  PLANCAST_CHECK(false) << "no block `" << name << "`";
  return graph.blocks[0];
}

std::vector<KernelSpec> KernelsLabelled(const ExecutionGraph& graph, absl::string_view block,
                                        absl::string_view label) {
  std::vector<KernelSpec> kernels;
  const Block& b = BlockNamed(graph, block);
  for (int32_t t = 0; t < b.size(); ++t) {
    if (b.kind[t] == TaskKind::kKernel && b.label[t] == label) {
      kernels.push_back(graph.kernels[b.spec[t]]);
    }
  }
  return kernels;
}

}  // namespace plancast
