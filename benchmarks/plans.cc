#include "benchmarks/plans.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "graph/transformer/transformer_config.h"
#include "planner/forecast/model_source.h"
#include "strategy/short_form.h"
#include "strategy/software_profile.h"

namespace plancast {
namespace {

template <typename T>
T Must(absl::StatusOr<T> value) {
  PLANCAST_CHECK_OK(value);
  return *std::move(value);
}

NamedPlan Make(const std::string& name, const TransformerConfig& config, const char* machine,
               const char* strategy, int64_t batch, const char* profile, DType dtype) {
  Job job;
  job.model = Must(TransformerSource(config));
  job.strategy = StrategyTree::FromShortForm(Must(ParseShortForm(strategy)));
  job.global_batch = batch;
  job.profile = Must(FindSoftwareProfile(profile));
  job.dtype = dtype;
  return {name, std::move(job), Must(MachineFromPreset(machine))};
}

TransformerConfig Llama3(int64_t layers, int64_t hidden, int64_t heads, int64_t ffn) {
  TransformerConfig config;
  config.layers = layers;
  config.hidden = hidden;
  config.heads = heads;
  config.kv_heads = 8;
  config.head_dim = 128;
  config.ffn = ffn;
  config.vocab = 128256;
  config.seq = 8192;
  config.mlp = Mlp::kSwiglu;
  config.norm = Norm::kRmsNorm;
  config.position = Position::kRope;
  return config;
}

TransformerConfig Gpt(const char* name, int64_t layers, int64_t hidden, int64_t heads,
                      int64_t seq) {
  TransformerConfig config;
  config.name = name;
  config.layers = layers;
  config.hidden = hidden;
  config.heads = heads;
  config.vocab = 51200;
  config.seq = seq;
  config.tied_embeddings = true;
  config.qkv_bias = config.out_bias = config.mlp_bias = true;
  return config;
}

}  // namespace

NamedPlan Gpt3OnA100() {
  const TransformerConfig config = Gpt("gpt3-175b", 96, 12288, 96, 2048);
  return Make(config.name, config, "dgx-a100-80g:8", "tp=8,pp=8,vpp=3,mb=1,recompute=full", 64,
              "megatron-2021", DType::kFp16);
}

NamedPlan Gpt1500mOnA100() {
  const TransformerConfig config = Gpt("gpt-1.5b", 48, 1600, 16, 1024);
  return Make(config.name, config, "dgx-a100-80g:8", "dp=2,tp=8,pp=4,mb=1", 32, "megatron-2021",
              DType::kFp16);
}

NamedPlan Gpt3At32Stages(int64_t dp) {
  const TransformerConfig config = Gpt("gpt3-175b", 96, 12288, 96, 2048);
  return Make(config.name, config, absl::StrCat("vtrain-a100-80g:", 16 * dp).c_str(),
              absl::StrCat("dp=", dp, ",tp=4,pp=32,mb=2,recompute=full").c_str(), 384 * dp,
              "megatron-2021", DType::kFp16);
}

NamedPlan Gpt3AtEightStages(const std::string& more, int64_t batch) {
  const TransformerConfig config = Gpt("gpt3-175b", 96, 12288, 96, 2048);
  return Make(config.name, config, "dgx-a100-80g:8", absl::StrCat("tp=8,pp=8,mb=1,", more).c_str(),
              batch, "megatron-core", DType::kBf16);
}

NamedPlan Gpt530b(int64_t vpp) {
  const TransformerConfig config = Gpt("gpt-530b", 105, 20480, 128, 2048);
  return Make(config.name, config, "dgx-a100-80g:35",
              absl::StrCat("dp=1,tp=8,pp=35,vpp=", vpp, ",mb=1,recompute=full").c_str(), 280,
              "megatron-2021", DType::kFp16);
}

NamedPlan Gpt530bInterleaved() { return Gpt530b(/*vpp=*/3); }

NamedPlan Llama70bOnH100() {
  TransformerConfig config = Llama3(80, 8192, 64, 28672);
  config.name = "llama3-70b";
  return Make(config.name, config, "dgx-h100:16", "tp=8,pp=4,sp,zero=1,overlap=grad+param", 128,
              "megatron-core", DType::kBf16);
}

NamedPlan Llama70bInterleaved() {
  TransformerConfig config = Llama3(80, 8192, 64, 28672);
  config.name = "llama3-70b";
  return Make(config.name, config, "dgx-h100:16",
              "tp=4,pp=8,vpp=10,dp=4,sp,zero=1,overlap=grad+param", 256, "megatron-core",
              DType::kBf16);
}

NamedPlan Llama405b(const char* preset, int64_t dp) {
  TransformerConfig config = Llama3(126, 16384, 128, 53248);
  config.name = "llama3-405b";
  const std::string hosts = absl::StrCat(preset, ":", 16 * dp);
  const std::string strategy =
      absl::StrCat("dp=", dp, ",tp=8,pp=16,vpp=8,sp,zero=1,mb=1,overlap=grad+param+tp");
  return Make(config.name, config, hosts.c_str(), strategy.c_str(), 16 * dp, "megatron-core",
              DType::kBf16);
}

NamedPlan Llama405bOnH100() { return Llama405b("dgx-h100", 128); }

}  // namespace plancast
