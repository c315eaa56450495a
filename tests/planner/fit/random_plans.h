#ifndef PLANCAST_TESTS_PLANNER_FIT_RANDOM_PLANS_H_
#define PLANCAST_TESTS_PLANNER_FIT_RANDOM_PLANS_H_

// Jobs on 16 devices, and random plans for them.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cluster/machine.h"
#include "planner/forecast/job.h"
#include "planner/forecast/model_source.h"
#include "strategy/software_profile.h"
#include "tests/strategy/schedule/random_table.h"

namespace plancast {

inline TransformerConfig SmallLlama() {
  TransformerConfig config;
  config.name = "small";
  config.layers = 12;
  config.hidden = 2048;
  config.heads = 16;
  config.kv_heads = 8;
  config.ffn = 5504;
  config.vocab = 32000;
  config.seq = 2048;
  config.norm = Norm::kRmsNorm;
  config.mlp = Mlp::kSwiglu;
  config.position = Position::kRope;
  config.qkv_bias = config.out_bias = config.mlp_bias = false;
  return config;
}

inline TransformerConfig SmallMixtral() {
  TransformerConfig config = SmallLlama();
  config.name = "small experts";
  config.experts.count = 8;
  config.experts.topk = 2;
  config.experts.ffn = 2752;
  return config;
}

struct Case {
  Case(const TransformerConfig& config, const std::string& profile, const std::string& preset,
       int hosts)
      : machine(*MachineFromPreset(absl::StrCat(preset, ":", hosts))) {
    job.model = *TransformerSource(config);
    job.global_batch = 64;
    job.profile = *FindSoftwareProfile(profile);
  }
  Job job;
  Machine machine;
};

// Every knob that memory depends on; some plans are refused.
inline std::string DrawPlan(std::mt19937& random, bool experts) {
  const auto pick = [&](std::vector<std::string> words) { return words[random() % words.size()]; };
  const int tp = 1 << random() % 3, pp = 1 << random() % 3, mb = 1 << random() % 3;
  std::string plan = absl::StrCat("tp=", tp, ",pp=", pp, ",mb=", mb);
  const auto add = [&](const std::string& words) { absl::StrAppend(&plan, words); };
  if (tp > 1 && random() % 2 == 0) add(",sp");
  add(pick({"", "", "", "", ",cp=2", ",cp=2,cp_type=allgather", ",cp=2,cp_type=ulysses"}));
  if (pp > 1 && random() % 3 == 0) {
    add(pp == 4 ? ",vpp=3" : ",vpp=2");
    add(pick({"", "", "", ",schedule=breadth-first", ",schedule=CHUNKS"}));
  } else if (pp > 1 && random() % 3 == 0) {  // layers that do not go round
    add(pick({",schedule=zbv", ",schedule=zbvhalf", ",schedule=zbvmin", ",schedule=dualpipe",
              ",schedule=dualpipev", ",schedule=hanayo", ",schedule=chimera",
              pp == 2 ? ",schedule=hanayo,vpp=6" : ",schedule=hanayo,vpp=2"}));
  } else if (pp > 1) {
    add(pick({"", "", "", ",schedule=gpipe", ",schedule=eager-1f1b", ",schedule=TABLE",
              ",schedule=WEIGHTS", ",schedule=zbh1", ",schedule=zb1p", ",schedule=zb2p",
              ",schedule=ongoing:3", ",vocab_parallel=vocab1", ",vocab_parallel=vocab2",
              ",vocab_parallel=interlaced", ",schedule=zbvhalf,vocab_parallel=vocab1",
              ",schedule=zbvmin,vocab_parallel=vocab2"}));
    if (pp == 4) add(pick({"", "", ",layout=2+4+4+2", ",layout=1+4+4+3"}));
  }
  if (experts) add(pick({"", ",ep=2", ",ep=4", ",ep=2,etp=1"}));
  const int zero = static_cast<int>(random() % 4);
  if (zero > 0) add(absl::StrCat(",zero=", zero, pick({"", "", ",hsdp=2", ",hsdp=4"})));
  if (zero == 3) {
    add(pick({"", "", ",reshard=off", ",reshard=2", ",reshard=on"}));
    add(pick({"", "", ",prefetch=0", ",prefetch=2", ",prefetch=3"}));
  }
  if (zero > 1) add(pick({"", ",sync=each", ",sync=last"}));
  add(pick({"", "", ",recompute=selective", ",recompute=full", ",recompute=full:2",
            ",recompute=every:2", ",recompute=uniform:2", ",recompute=selective:layernorm+mlp",
            experts ? ",recompute=selective:moe_act" : ",recompute=selective:op"}));
  add(pick({"", "", "", ",offload=activations", ",offload=activations:3", ",offload=optimizer",
            zero == 3 ? ",offload=param+optimizer" : ",offload=optimizer+activations"}));
  add(pick({"", ",overlap=grad", ",overlap=grad+param", ",overlap=none",
            experts ? ",overlap=grad+param+ep" : ",overlap=param"}));
  add(pick({"", "", "", "", ",optimizer=post-validated", ",optimizer=in-backward"}));
  add(pick({"", "", ",bucket=200MB"}));
  add(pick({"", "", ",attn=unfused"}));
  if (zero > 1) add(pick({"", ",unit=2", ",unit=3"}));
  // 64 samples on 16 devices.
  const ScheduleShape shape{pp, 64 / std::max(1, 16 / tp / pp * mb), 1};
  ScheduleShape chunks = shape;
  chunks.chunks = pp == 4 ? 3 : 2;
  return absl::StrReplaceAll(
      plan, {{"TABLE", PrintScheduleTable(RandomTable(shape, random))},
             {"CHUNKS", PrintScheduleTable(RandomTable(chunks, random, /*weights=*/random() % 2))},
             {"WEIGHTS", PrintScheduleTable(RandomTable(shape, random, /*weights=*/true))}});
}

struct Drawn {
  const char* profile;
  const char* preset;
  bool experts;
};
constexpr Drawn kDrawn[] = {
    {"megatron-core", "dgx-a100-80g", false}, {"megatron-2021", "dgx-a100-40g", false},
    {"layouts-2023", "dgx-a100-80g", false},  {"fsdp", "dgx-a100-40g", false},
    {"torchtitan", "dgx-h100", false},        {"deepspeed", "dgx-a100-80g", false},
    {"megatron-core", "dgx-a100-40g", true}};

}  // namespace plancast

#endif  // PLANCAST_TESTS_PLANNER_FIT_RANDOM_PLANS_H_
