#include "compiler/sharding/optimizer_step.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace plancast {
namespace {

KernelSpec StateKernel(KernelFamily family, const std::string& label, double reads, double writes) {
  KernelSpec kernel;
  kernel.family = family;
  kernel.label = label;
  kernel.dtype = DType::kFp32;
  kernel.read_bytes = reads;
  kernel.write_bytes = writes;
  return kernel;
}

// Clipping reads and writes gradients, which are fp32 there, the update reads them.
int UpdateOnHost(const SoftwareProfile& profile, double elements, double other_bytes,
                 int64_t copied_back, int ready, BlockBuilder* builder) {
  CommSpec update;
  update.kind = CollectiveKind::kHostUpdate;
  update.bytes = static_cast<int64_t>(
      std::ceil(other_bytes + elements * 4 * (profile.update.grad_clip ? 3 : 1)));
  ready = builder->AddComm(update, StreamKind::kCompute, Purpose::kOptimizer, "adam on the host",
                           {ready});
  if (copied_back == 0) return ready;
  CommSpec copy;
  copy.kind = CollectiveKind::kCopyToDevice;
  copy.bytes = copied_back;
  return builder->AddComm(copy, StreamKind::kCopyIn, Purpose::kOffload, "copy in parameters",
                          {ready});
}

// Adam reads gradient, two moments and the weight,
// writes the moments and the weight, and the low-precision copy where there is a master.
struct Traffic {
  double gradients = 0;  // one reading of them
  double reads = 0, writes = 0;
};

Traffic TrafficOf(const SoftwareProfile& profile, DType dtype, double gradient_bytes,
                  const ShardedUpdate::Share& share) {
  const double state =
      ElementBytes(profile.types.state_dtype) + ElementBytes(profile.SecondStateType());
  const double low = ElementBytes(profile.ParamType(dtype));
  const std::optional<DType> master = profile.MasterType(dtype);
  const double weight = master.has_value() ? ElementBytes(*master) : low;
  const double halves = master == DType::kInt16 ? low : 0;  // with it, the master weight
  const double copied = master.has_value() && !share.rests_as_master ? low : 0;
  const double n = static_cast<double>(share.elements);
  const double gradients = n * gradient_bytes;
  if (!profile.update.foreach_optimizer) {
    return {gradients, gradients + n * (state + weight + halves), n * (state + weight + copied)};
  }
  // Weight decay and update of the weight; the first moment's and the second's; the
  // root of the second and what it is divided by, in tensors of their own.
  const double second = ElementBytes(profile.SecondStateType()), first = state - second;
  return {gradients, 2 * gradients + n * (2 * weight + 2 * first + 6 * second + halves),
          n * (2 * weight + first + 5 * second + copied)};
}

// The sum of squares of all ranks' gradients; a program that joins others waits for them.
int AddNorm(const GradientNorm& norm, int ready, BlockBuilder* builder) {
  CommSpec comm;
  comm.kind = CollectiveKind::kAllReduce;
  comm.axes = norm.axes;
  comm.bytes = 4;
  ready = builder->AddComm(comm, StreamKind::kModelComm, Purpose::kOptimizer,
                           "all_reduce grad_norm", {ready});
  if (norm.joins_programs) builder->MarkRendezvous(ready);
  builder->MarkHostSync(ready);
  return ready;
}

}  // namespace

BlockTemplate GradientsToHost(int64_t bytes) {
  BlockBuilder builder("copy out gradients");
  CommSpec copy;
  copy.kind = CollectiveKind::kCopyToHost;
  copy.bytes = bytes;
  builder.AddComm(copy, StreamKind::kCopyOut, Purpose::kOffload, "copy out gradients", {});
  return std::move(builder).Build();
}

bool StepHasNorm(const SoftwareProfile& profile, const GradientNorm& norm) {
  return (profile.update.grad_clip || norm.joins_programs) && !norm.axes.empty() && !norm.none;
}

bool ChecksGradients(const SoftwareProfile& profile, DType dtype) {
  return profile.update.grad_clip || (profile.update.fp16_overflow_check && dtype == DType::kFp16);
}

BlockTemplate OptimizerStep(const SoftwareProfile& profile, DType dtype, int64_t elements,
                            const GradientNorm& norm, const ShardedUpdate& sharded) {
  BlockBuilder builder("optimizer", norm.chained ? 1 : 0);
  const auto free = [&](int task) {
    if (sharded.freed_gradients == 0 && sharded.freed_shards == 0) return;
    const uint16_t gradients = builder.AddTensor("gradients");
    const auto give_up = [&](int64_t bytes, MemoryPool pool) {
      if (bytes == 0) return;
      builder.AddMemory(task, true, MemoryKind::kGradients, gradients, -bytes, /*early=*/false,
                        pool);
    };
    give_up(sharded.freed_gradients, MemoryPool::kCompute);
    give_up(sharded.freed_shards, sharded.pool);
  };
  const bool sums_alone = elements == 0 && norm.joins_programs && !norm.axes.empty();
  if (sums_alone || sharded.elsewhere) {
    const int summed = AddNorm(norm, BlockBuilder::kNone, &builder);
    if (sharded.elsewhere) free(summed);
    return std::move(builder).Build();
  }
  const double n = static_cast<double>(elements);
  double grad_each = ElementBytes(profile.types.grad_dtype);
  const Purpose purpose = Purpose::kOptimizer;
  int ready = BlockBuilder::kNone;
  const DType main_grad = profile.types.main_grad_dtype.value_or(profile.types.grad_dtype);
  const bool copies = main_grad != profile.types.grad_dtype;
  const uint16_t copy = copies ? builder.AddTensor("main gradients") : 0;
  if (copies) {
    const double main_each = ElementBytes(main_grad);
    ready = builder.AddKernel(
        StateKernel(KernelFamily::kMemory, "main_grads", n * grad_each, n * main_each), purpose,
        "main_grads", {ready});
    builder.AddMemory(ready, false, MemoryKind::kWorkspace, copy, StoredBytes(main_grad, elements));
    grad_each = main_each;
  }
  const double grad_bytes = n * grad_each;
  if (!norm.none && profile.update.fp16_overflow_check && dtype == DType::kFp16) {
    ready = builder.AddKernel(StateKernel(KernelFamily::kMemory, "overflow_check", grad_bytes, 0),
                              purpose, "overflow_check", {ready});
  }
  const bool finds_norm = profile.update.grad_clip && !norm.none;
  if (finds_norm) {
    ready = builder.AddKernel(StateKernel(KernelFamily::kMemory, "grad_norm", grad_bytes, 0),
                              purpose, "grad_norm", {ready});
  }
  if (StepHasNorm(profile, norm)) ready = AddNorm(norm, ready, &builder);
  if (norm.chained) {
    builder.AddOutPort(ready);
    ready = ~0;
  }
  Traffic here, there;
  int64_t on_host = 0;
  bool updates_here = false, updates_there = false;
  const auto add = [&](const ShardedUpdate::Share& share) {
    const Traffic traffic = TrafficOf(profile, dtype, grad_each, share);
    Traffic& sum = share.on_host ? there : here;
    sum.gradients += traffic.gradients;
    sum.reads += traffic.reads;
    sum.writes += traffic.writes;
    if (share.on_host) on_host += share.elements;
    (share.on_host ? updates_there : updates_here) = true;
  };
  for (const ShardedUpdate::Share& share : sharded.shares) add(share);
  if (sharded.shares.empty()) add({elements, false, false});
  const int agreed = ready;
  if (finds_norm && !norm.chained && updates_here) {
    ready = builder.AddKernel(
        StateKernel(KernelFamily::kMemory, "grad_clip", here.gradients, here.gradients), purpose,
        "grad_clip", {ready});
  }
  if (updates_here) {
    ready =
        builder.AddKernel(StateKernel(KernelFamily::kOptimizer, "adam", here.reads, here.writes),
                          purpose, "adam", {ready});
  }
  if (updates_there) {
    const int there_too = UpdateOnHost(profile, static_cast<double>(on_host),
                                       there.reads - there.gradients + there.writes,
                                       sharded.copied_back, agreed, &builder);
    if (!updates_here) ready = there_too;
  }
  free(ready);
  if (copies) {
    builder.AddMemory(ready, true, MemoryKind::kWorkspace, copy, -StoredBytes(main_grad, elements));
  }
  return std::move(builder).Build();
}

BlockTemplate ZeroGradients(const SoftwareProfile& profile, int64_t elements) {
  BlockBuilder builder("zero_grad");
  builder.AddKernel(
      StateKernel(KernelFamily::kMemory, "zero_grad", 0,
                  static_cast<double>(elements) * ElementBytes(profile.types.grad_dtype)),
      Purpose::kOptimizer, "zero_grad", {});
  return std::move(builder).Build();
}

}  // namespace plancast
