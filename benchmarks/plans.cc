#include "benchmarks/plans.h"

#include <utility>

#include "base/check.h"
#include "graph/models/transformer_config.h"
#include "planner/model_sources.h"
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

}  // namespace

NamedPlan Gpt3OnA100() {
  TransformerConfig config;
  config.name = "gpt3-175b";
  config.layers = 96;
  config.hidden = 12288;
  config.heads = 96;
  config.vocab = 51200;
  config.seq = 2048;
  config.tied_embeddings = true;
  config.qkv_bias = config.out_bias = config.mlp_bias = true;
  return Make(config.name, config, "dgx-a100-80g:8", "tp=8,pp=8,vpp=3,mb=1,recompute=full", 64,
              "megatron-2021", DType::kFp16);
}

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

NamedPlan Llama405bOnH100() {
  TransformerConfig config = Llama3(126, 16384, 128, 53248);
  config.name = "llama3-405b";
  return Make(config.name, config, "dgx-h100:2048",
              "dp=128,tp=8,pp=16,vpp=8,sp,zero=1,mb=1,overlap=grad+param+tp", 2048, "megatron-core",
              DType::kBf16);
}

}  // namespace plancast
