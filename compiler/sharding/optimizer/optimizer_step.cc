#include "compiler/sharding/optimizer/optimizer_step.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "strategy/profile/update_bytes.h"

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
  ready = builder->AddComm(update, StreamKind::kCompute, Purpose::kOptimizer,
                           absl::StrCat(kOptimizerTypeNames[profile.update.type], " on the host"),
                           {ready});
  if (copied_back == 0) return ready;
  CommSpec copy;
  copy.kind = CollectiveKind::kCopyToDevice;
  copy.bytes = copied_back;
  return builder->AddComm(copy, StreamKind::kCopyIn, Purpose::kOffload, "copy in parameters",
                          {ready});
}

// How often a pass over all elements reads or writes each. Of what is made on the way, steps count
// as gradients, divisors as moments.
struct Counts {
  double gradient = 0, weight = 0, first = 0, second = 0;
};

struct Pass {
  absl::string_view label;
  Counts reads, writes;
  bool norms = false;  // of every tensor's weights and step, which what follows waits for
  enum Of { kAll, kMatrices, kOthers } of = kAll;
  // Of matrices in bf16, which products take next, or gave.
  double writes_16 = 0, reads_16 = 0;
};

// What writes weights writes the low-precision copy as well, where there is a master.
std::vector<Pass> PassesOf(OptimizerType type, bool foreach) {
  const absl::string_view name = kOptimizerTypeNames[type];
  switch (type) {
    case OptimizerType::kLamb:
      // Apex (csrc/multi_tensor_lamb.cu): moments and step, which takes the gradient's place; the
      // norms of weight and step, tensor by tensor; the update.
      return {{"lamb moments", {1, 1, 1, 1}, {1, 0, 1, 1}},
              {"lamb norms", {1, 1}, {}, true},
              {name, {1, 1}, {0, 1}}};
    case OptimizerType::kMuon:
      // Momentum and its norm; scaled to norm one; behind the products the update. All that is no
      // matrix has Adam.
      return {{"muon momentum", {1, 0, 2}, {0, 0, 1}, false, Pass::kMatrices, 1, 0},
              {name, {0, 1}, {0, 1}, false, Pass::kMatrices, 0, 1},
              {"adam", {1, 1, 1, 1}, {0, 1, 1, 1}, false, Pass::kOthers}};
    case OptimizerType::kLion:
      return {{name, {1, 1, 1}, {0, 1, 1}}};
    // torch.optim's foreach, which adds decay of weights to gradients (AdamW: to weights) and runs
    // each operation over everything: Adam's are mul, lerp, mul, addcmul, sqrt, div, add, addcdiv.
    case OptimizerType::kAdam:
      if (foreach) return {{name, {2, 2, 2, 6}, {0, 2, 1, 5}}};
      return {{name, {1, 1, 1, 1}, {0, 1, 1, 1}}};
    case OptimizerType::kSgd:  // add, add
      if (foreach) return {{name, {2, 2}, {1, 1}}};
      return {{name, {1, 1}, {0, 1}}};
    case OptimizerType::kSgdMomentum:  // add, mul, add, add
      if (foreach) return {{name, {2, 2, 3}, {1, 1, 2}}};
      return {{name, {1, 1, 1}, {0, 1, 1}}};
    case OptimizerType::kAdagrad:  // add, addcmul, sqrt, add, mul, div, add
      if (foreach) return {{name, {5, 2, 4}, {3, 1, 3}}};
      return {{name, {1, 1, 1}, {0, 1, 1}}};
    case OptimizerType::kRmsprop:  // add, mul, addcmul, sqrt, add, addcdiv
      if (foreach) return {{name, {3, 2, 5}, {1, 1, 4}}};
      return {{name, {1, 1, 1}, {0, 1, 1}}};
  }
  return {};
}

struct Traffic {
  double gradients = 0;  // of what it reads
  double reads = 0, writes = 0;
};

int64_t ElementsOf(const Pass& pass, const ShardedUpdate::Share& share) {
  if (pass.of == Pass::kAll) return share.elements;
  const int64_t matrices = share.matrices.elements;
  return pass.of == Pass::kMatrices ? matrices : share.elements - matrices;
}

Traffic TrafficOf(const Pass& pass, const SoftwareProfile& profile, DType dtype,
                  double gradient_bytes, const ShardedUpdate::Share& share) {
  const UpdateBytes each = UpdateBytesOf(profile, dtype);
  const double copied = pass.writes.weight > 0 && !share.rests_as_master ? each.copy : 0;
  const double n = static_cast<double>(ElementsOf(pass, share));
  const auto bytes = [&](const Counts& counts, double of_weight) {
    return counts.weight * of_weight + counts.first * each.first + counts.second * each.second;
  };
  const double gradients = n * gradient_bytes * pass.reads.gradient;
  return {gradients,
          gradients + n * (bytes(pass.reads, each.weight + each.rest) + 2 * pass.reads_16),
          n * (gradient_bytes * pass.writes.gradient + bytes(pass.writes, each.weight) +
               2 * pass.writes_16 + copied)};
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

// Muon's iteration over all matrices that are updated here.
int AddProducts(const std::vector<ShardedUpdate::Share>& shares, int ready, BlockBuilder* builder) {
  for (const ShardedUpdate::Share& share : shares) {
    for (const MatrixShape& shape : share.matrices.shapes) {
      const std::vector<KernelSpec> products = NewtonSchulzProducts(shape);
      for (int step = 0; step < kNewtonSchulzSteps; ++step) {
        for (const KernelSpec& product : products) {
          ready = builder->AddKernel(product, Purpose::kOptimizer, product.label, {ready});
        }
      }
    }
  }
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
  return (profile.update.finds_norm() || norm.joins_programs) && !norm.axes.empty() && !norm.none;
}

bool ChecksGradients(const SoftwareProfile& profile, DType dtype) {
  return profile.update.finds_norm() ||
         (profile.update.fp16_overflow_check && dtype == DType::kFp16);
}

bool CopiesGradients(const SoftwareProfile& profile) {
  return profile.types.main_grad_dtype.value_or(profile.types.grad_dtype) !=
         profile.types.grad_dtype;
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
  const bool copies = CopiesGradients(profile);
  const DType main_grad = copies ? *profile.types.main_grad_dtype : profile.types.grad_dtype;
  const uint16_t copy = copies ? builder.AddTensor("main gradients") : 0;
  const auto copy_memory = [&](int task, bool gone) {
    const int64_t tensors = std::max<int64_t>(sharded.tensors, 1);
    int64_t left = StoredBytes(main_grad, elements);
    for (int64_t t = tensors; t > 0 && left > 0; --t) {
      const int64_t bytes = (left + t - 1) / t;
      builder.AddMemory(task, gone, MemoryKind::kWorkspace, copy, gone ? -bytes : bytes);
      left -= bytes;
    }
  };
  if (copies) {
    const double main_each = ElementBytes(main_grad);
    ready = builder.AddKernel(
        StateKernel(KernelFamily::kMemory, "main_grads", n * grad_each, n * main_each), purpose,
        "main_grads", {ready});
    copy_memory(ready, /*gone=*/false);
    grad_each = main_each;
  }
  const double grad_bytes = n * grad_each;
  if (!norm.none && profile.update.fp16_overflow_check && dtype == DType::kFp16) {
    ready = builder.AddKernel(StateKernel(KernelFamily::kMemory, "overflow_check", grad_bytes, 0),
                              purpose, "overflow_check", {ready});
  }
  const bool finds_norm = profile.update.finds_norm() && !norm.none;
  if (finds_norm) {
    ready = builder.AddKernel(StateKernel(KernelFamily::kMemory, "grad_norm", grad_bytes, 0),
                              purpose, "grad_norm", {ready});
  }
  if (StepHasNorm(profile, norm)) ready = AddNorm(norm, ready, &builder);
  if (norm.chained) {
    builder.AddOutPort(ready);
    ready = ~0;
  }
  std::vector<ShardedUpdate::Share> shares = sharded.shares;
  if (shares.empty()) shares.push_back({elements, false, false});
  const std::vector<Pass> passes = PassesOf(profile.update.type, profile.update.foreach_optimizer);
  double gradients_here = 0;
  Traffic there;
  int64_t on_host = 0;
  bool updates_here = false, updates_there = false;
  for (const ShardedUpdate::Share& share : shares) {
    (share.on_host ? updates_there : updates_here) = true;
    if (!share.on_host) gradients_here += grad_each * static_cast<double>(share.elements);
    if (share.on_host) on_host += share.elements;
  }
  // One pass at least: others wait for the step of a device that has nothing to update.
  const auto runs_here = [&](const Pass& pass) {
    const bool only = &pass == &passes.back() && builder.size() == 0;
    return updates_here && (pass.of == Pass::kAll || only ||
                            std::any_of(shares.begin(), shares.end(), [&](const auto& share) {
                              return !share.on_host && ElementsOf(pass, share) > 0;
                            }));
  };
  const auto sum_of = [&](const Pass& pass, bool host) {
    Traffic sum;
    for (const ShardedUpdate::Share& share : shares) {
      if (share.on_host != host) continue;
      const Traffic traffic = TrafficOf(pass, profile, dtype, grad_each, share);
      sum.gradients += traffic.gradients;
      sum.reads += traffic.reads;
      sum.writes += traffic.writes;
    }
    return sum;
  };
  const int agreed = ready;
  // LAMB clips as it goes.
  if (finds_norm && profile.update.type != OptimizerType::kLamb && !norm.chained && updates_here) {
    ready = builder.AddKernel(
        StateKernel(KernelFamily::kMemory, "grad_clip", gradients_here, gradients_here), purpose,
        "grad_clip", {ready});
  }
  for (const Pass& pass : passes) {
    if (runs_here(pass)) {
      const Traffic here = sum_of(pass, false);
      const std::string label(pass.label);
      ready =
          builder.AddKernel(StateKernel(KernelFamily::kOptimizer, label, here.reads, here.writes),
                            purpose, label, {ready});
      if (pass.writes_16 > 0) ready = AddProducts(shares, ready, &builder);
      if (pass.norms && !norm.of_tensors.empty()) {
        CommSpec comm;
        comm.kind = CollectiveKind::kAllReduce;
        comm.axes = norm.of_tensors;
        comm.bytes = 8 * std::max<int64_t>(sharded.tensors, 1);
        ready = builder.AddComm(comm, StreamKind::kModelComm, purpose, "all_reduce lamb norms",
                                {ready});
      }
    }
    if (updates_there) {
      const Traffic more = sum_of(pass, true);
      there.gradients += more.gradients;
      there.reads += more.reads;
      there.writes += more.writes;
    }
  }
  if (updates_there) {
    const int there_too = UpdateOnHost(profile, static_cast<double>(on_host),
                                       there.reads - there.gradients + there.writes,
                                       sharded.copied_back, agreed, &builder);
    if (!updates_here) ready = there_too;
  }
  free(ready);
  if (copies) copy_memory(ready, /*gone=*/true);
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
