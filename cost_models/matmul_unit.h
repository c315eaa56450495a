#ifndef PLANCAST_COST_MODELS_MATMUL_UNIT_H_
#define PLANCAST_COST_MODELS_MATMUL_UNIT_H_

#include "absl/strings/string_view.h"
#include "cluster/machine.h"
#include "graph/dtype.h"

namespace plancast {

// The unit of a device that multiplies matrices of one type.
struct MatmulUnit {
  DType runs = DType::kBf16;       // what it runs them as
  double peak_flops = 0;           // 0: the device has none, or its rate is unknown
  absl::string_view coefficients;  // which coefficients describe it: `bf16`, `fp8`, ...
  bool borrowed = false;           // those coefficients are of another type
  double held_to = 1;              // what a published cap leaves of the rate; part of `peak_flops`
};

// A device without a unit for `type` runs the next wider type that it has: fp8
// on A100 runs as bf16, bf16 on V100 as fp16.
MatmulUnit MatmulUnitFor(const DeviceType& device, DType type);

// Nominal 16-bit TFLOP/s per watt of board power (fp32 where there is none); 0 if unknown.
double PowerDensity(const DeviceType& device);

// FLOPs per SM and clock, equal for devices of one design: of fp32 for its own
// coefficients, else of fp16 (fp32 where there is none); 0 if unknown.
double SpeedGrade(const DeviceType& device, absl::string_view coefficients = "bf16");

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_MATMUL_UNIT_H_
