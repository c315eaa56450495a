#ifndef PLANCAST_BENCHMARKS_PLANS_H_
#define PLANCAST_BENCHMARKS_PLANS_H_

#include <string>

#include "cluster/machine.h"
#include "planner/predict.h"

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
// Llama-3-405B on 16,384 H100s (dp=128, tp=8, pp=16, vpp=8, batch 2048).
NamedPlan Llama405bOnH100();

}  // namespace plancast

#endif  // PLANCAST_BENCHMARKS_PLANS_H_
