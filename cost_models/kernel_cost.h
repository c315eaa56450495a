#ifndef PLANCAST_COST_MODELS_KERNEL_COST_H_
#define PLANCAST_COST_MODELS_KERNEL_COST_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_names.h"
#include "cluster/machine.h"
#include "graph/kernel_spec.h"

namespace plancast {

// How a figure is known, best first.
enum class Knowledge : uint8_t { kMeasured, kInterpolated, kCalibrated, kAnalytic, kExtrapolated };
inline constexpr auto kKnowledgeNames =
    NamesOf<Knowledge>("measured", "interpolated", "calibrated", "analytic", "extrapolated");

struct Provenance {
  Knowledge knowledge = Knowledge::kAnalytic;
  std::string source;  // `gemm tile model, A100-SXM-80GB, kernels/gemm.csv (aic), 2026-11-21`
};

// The price of one kernel alone on one device.
struct KernelCost {
  double seconds_alone = 0;  // on the GPU, without the host's launch
  double sm_fraction = 1;    // of the device's SMs it occupies
  double hbm_bytes = 0;      // traffic it puts on device memory
  Provenance provenance;
  // Latent errors the figure shares with others (`A100-SXM-80GB/gemm`) and the
  // relative one-sigma error of that factor and of this figure alone.
  std::string factor;
  double factor_sigma = 0;
  double sigma = 0;
};

// One way to price kernels. Answers std::nullopt where it does not apply.
class KernelCostModel {
 public:
  virtual ~KernelCostModel() = default;
  virtual std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                             const DeviceType& device) const = 0;
};

// Asks each model in turn; the first answer counts.
class FirstMatchModel : public KernelCostModel {
 public:
  explicit FirstMatchModel(std::vector<std::shared_ptr<const KernelCostModel>> chain)
      : chain_(std::move(chain)) {}
  std::optional<KernelCost> Estimate(const KernelSpec& kernel,
                                     const DeviceType& device) const override;

 private:
  std::vector<std::shared_ptr<const KernelCostModel>> chain_;
};

// The shipped chain: calibrated tile/wave GEMM and attention models for GPUs
// with coefficients (cost_models/data/*.textproto), the others' median
// coefficients for GPUs without (said aloud as extrapolated), a roofline with
// sustained fractions last. Always answers.
std::shared_ptr<const KernelCostModel> DefaultKernelCostModel();

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_KERNEL_COST_H_
