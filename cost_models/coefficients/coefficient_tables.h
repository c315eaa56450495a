#ifndef PLANCAST_COST_MODELS_COEFFICIENTS_COEFFICIENT_TABLES_H_
#define PLANCAST_COST_MODELS_COEFFICIENTS_COEFFICIENT_TABLES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/embedded_file.h"
#include "cluster/machine.h"
#include "cost_models/coefficients/coefficient_family.h"
#include "cost_models/coefficients/coefficients.h"

namespace plancast {

// All tables, looked up by device. Immutable; thread-safe.
class CoefficientTables {
 public:
  // Reads text protos of type KernelCostCoefficients. Errors name the file and
  // the field.
  static absl::StatusOr<CoefficientTables> Parse(absl::Span<const EmbeddedFile> files);
  // Those of cost_models/data.
  static const CoefficientTables& Shipped();

  // `dtype` as MatmulUnit::coefficients. Nullptr if no GPU has any for it.
  const CoefficientEntry<GemmCoefficients>* FindGemm(absl::string_view dtype,
                                                     const DeviceType& device) const;
  const CoefficientEntry<AttentionCoefficients>* FindAttention(absl::string_view dtype,
                                                               const DeviceType& device) const;
  const CoefficientEntry<ConvolutionCoefficients>* FindConvolution(absl::string_view dtype,
                                                                   const DeviceType& device) const;
  const CoefficientEntry<MemoryCoefficients>* FindMemory(const DeviceType& device) const;
  const CoefficientEntry<RooflineCoefficients>& roofline() const { return roofline_; }
  // Rate of kernels bound by products in `dtype` on `device` over that which the entry of other
  // GPUs says: chips with more FLOPs per watt run at lower clocks. 1 for its own entry. `draw`:
  // dynamic power of the kernel over that of products, which counts under a cap.
  double PowerScale(const CoefficientEntry<GemmCoefficients>& entry, absl::string_view dtype,
                    const DeviceType& device, double draw = 1) const;

 private:
  struct ByType {
    std::string dtype;
    CoefficientFamily<GemmCoefficients> gemm;
    CoefficientFamily<AttentionCoefficients> attention;
    CoefficientFamily<ConvolutionCoefficients> convolution;
  };
  ByType& OfType(absl::string_view dtype);
  const ByType* FindType(absl::string_view dtype) const;

  std::vector<ByType> types_;
  CoefficientFamily<MemoryCoefficients> memory_;
  CoefficientEntry<RooflineCoefficients> roofline_;
  double power_slope_ = 0;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_COEFFICIENTS_COEFFICIENT_TABLES_H_
