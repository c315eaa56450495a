#include "compiler/lower/kernels/host_calls.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace plancast {

void HostCalls::Note(const KernelPart& part, absl::string_view op,
                     const SoftwareProfile::ExtraKernels* extra) {
  bool begins = false;
  const bool captured = profile_.Captures(op, &begins);
  captured_ |= captured;
  if (captured && !begins) return;
  if (part.step->part == Part::kWeightGrad) return;
  if (part.loop != nullptr && part.piece > 0 && part.step->rule->fused().empty()) return;
  const bool forward = part.step->part != Part::kBackward;
  const int usual = forward ? profile_.forward : profile_.backward;
  if (extra == nullptr || captured) {
    calls_ = std::max(calls_, usual);
  } else {
    calls_ =
        std::max(calls_, (forward ? extra->forward_calls : extra->backward_calls).value_or(usual));
  }
}

namespace {

// How many times as long as a copy it takes to order scales, single bytes of a matrix: on a GB200
// 2.1 MB take 4.3 us and 5.8 MB 12 (Transformer Engine, pull requests 3519 and 3011), 1 TB/s where
// copies reach five.
constexpr double kOrderedAt = 5;

KernelSpec OperandKernel(absl::string_view label, const KernelSpec& product, double read,
                         double write, int launches) {
  KernelSpec kernel = CopyKernel(std::string(label), read, write);
  kernel.dtype = StorageType(product.dtype);
  kernel.launches = launches;
  return kernel;
}

// An activation is quantised for its forward product and the weight gradient, a gradient for its
// two products; none before a weight gradient, and none for what comes quantised
// (docs/cost_models.md, *Quantisation*).
class OperandsOfProducts {
 public:
  OperandsOfProducts(const SoftwareProfile::Calls& profile, std::vector<KernelSpec>* kernels)
      : profile_(profile), kernels_(kernels) {}

  // What is done before the product, where the profile says in how many launches.
  void Add(KernelSpec* product) {
    if (product->family != KernelFamily::kGemm) return;
    const auto how = profile_.quantize.find(product->dtype);
    if (how == profile_.quantize.end()) return;
    AddQuantization(*product, how->second.launches);
    AddOrder(*product, how->second.ordered);
    product->quantized_operand = true;
  }

 private:
  void AddQuantization(const KernelSpec& product, int launches) {
    const std::pair<int64_t, int64_t> operand(product.batch * product.m * product.k, product.m);
    const bool again = product.pass == GemmPass::kForward && operand == before_;
    if (product.quantized_operand || product.pass == GemmPass::kWgrad || again) return;
    // It reads 16 bits and writes the type.
    const auto elements = static_cast<double>(operand.first);
    const double wide = ElementBytes(StorageType(product.dtype)) * QuantizationReads(launches);
    const double narrow = ElementBytes(product.dtype) * QuantizedSides(product.dtype);
    kernels_->push_back(OperandKernel("quantize_operand", product, elements * wide,
                                      elements * narrow, std::max(launches, 1) * product.launches));
    before_ = operand;
  }

  // One kernel for each operand, of all experts in one.
  void AddOrder(const KernelSpec& product, OrderedScales ordered) {
    if (!HasOrderedScales(product.dtype)) return;
    const bool of_weights = product.pass != GemmPass::kWgrad;
    const bool neither = ordered == OrderedScales::kNone;
    double elements = 0;
    int operands = 0;
    if (neither || product.quantized_operand) {
      elements += static_cast<double>(product.batch) * product.m * product.k;
      ++operands;
    }
    if (neither || (of_weights && ordered == OrderedScales::kActivations)) {
      elements += static_cast<double>(product.batch) * product.k * product.n;
      ++operands;
    }
    if (operands == 0) return;
    const double bytes = elements / ScaleBlock(product.dtype) * kOrderedAt;
    kernels_->push_back(OperandKernel("order_scales", product, bytes, bytes, operands));
  }

  const SoftwareProfile::Calls& profile_;
  std::vector<KernelSpec>* kernels_;
  std::pair<int64_t, int64_t> before_;  // elements and rows of the operand quantised last
};

void AddOperands(const SoftwareProfile::Calls& profile, std::vector<KernelSpec>* kernels) {
  std::vector<KernelSpec> all;
  OperandsOfProducts operands(profile, &all);
  for (KernelSpec& kernel : *kernels) {
    operands.Add(&kernel);
    all.push_back(std::move(kernel));
  }
  *kernels = std::move(all);
}

}  // namespace

void HostCalls::CountIn(std::vector<KernelSpec>* kernels) const {
  AddOperands(profile_, kernels);
  for (KernelSpec& kernel : *kernels) {
    if (captured_) {
      kernel.calls = -kernel.launches;
      continue;
    }
    kernel.calls = 0;
  }
  if (!kernels->empty()) kernels->front().calls += calls_;
}

int QuantizationReads(int launches) { return launches > 1 ? 2 : 1; }
int QuantizedSides(DType type) { return type == DType::kFp8 ? 1 : 2; }

bool HostWaitsFor(const PlanStep& step, const SoftwareProfile::Calls& profile) {
  const bool makes = step.part == Part::kForward || step.part == Part::kRecompute;
  return makes && profile.waits.count(step.op.rule->name()) > 0;
}

}  // namespace plancast
