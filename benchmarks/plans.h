#ifndef PLANCAST_BENCHMARKS_PLANS_H_
#define PLANCAST_BENCHMARKS_PLANS_H_

#include <cstdint>
#include <string>

#include "cluster/machine.h"
#include "planner/forecast/job.h"

namespace plancast {

// A training job that is measured: a published model on a shipped machine.
struct NamedPlan {
  std::string name;
  Job job;
  Machine machine;
};

// GPT-3 175B on 64 A100s (tp=8, pp=8, vpp=3, batch 64), full recompute.
NamedPlan Gpt3OnA100();
// Llama-3-70B on 128 H100s (tp=8, pp=4, batch 128).
NamedPlan Llama70bOnH100();
// The same model with a layer to a chunk (tp=4, pp=8, vpp=10, batch 256): many
// small instances and transfers.
NamedPlan Llama70bInterleaved();
// Llama-3-405B on 128 * dp GPUs of a machine preset (tp=8, pp=16, vpp=8, sp,
// ZeRO-1, all overlaps, 16 micro-batches).
NamedPlan Llama405b(const char* preset, int64_t dp);
// The same on 16,384 H100s (dp=128, batch 2048).
NamedPlan Llama405bOnH100();

// GPT-1.5B on 64 A100s (tp=8, pp=4, dp=2, 16 micro-batches), the plan that
// Proteus was timed on.
NamedPlan Gpt1500mOnA100();
// GPT-3 175B on 128 * dp A100s (tp=4, pp=32), every one of 192 micro-batches and
// full recompute: a row of vTrain's own measurements has dp=4.
NamedPlan Gpt3At32Stages(int64_t dp);
// GPT-3 175B on 64 A100s (tp=8, pp=8) with more directives, as of a schedule.
NamedPlan Gpt3AtEightStages(const std::string& more, int64_t batch);
// MT-NLG 530B on 280 A100s (tp=8, pp=35, vpp=3, batch 280; Korthikanti et al.), and with other
// numbers of chunks.
NamedPlan Gpt530bInterleaved();
NamedPlan Gpt530b(int64_t vpp);

}  // namespace plancast

#endif  // PLANCAST_BENCHMARKS_PLANS_H_
