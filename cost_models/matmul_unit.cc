#include "cost_models/matmul_unit.h"

namespace plancast {
namespace {

double Peak(const DeviceType& device, DType type) {
  switch (type) {
    case DType::kNvfp4:
      return device.fp4_flops;
    case DType::kFp8:
    case DType::kFp8Row:
    case DType::kFp8Block:
    case DType::kMxfp8:
      return device.fp8_flops;
    case DType::kFp16:
      return device.fp16_flops;
    case DType::kTf32:
      return device.tf32_flops;
    case DType::kFp32:
      return device.fp32_flops;
    default:
      return device.bf16_flops;
  }
}

DType NextWider(DType type) {
  switch (type) {
    case DType::kNvfp4:
      return DType::kFp8;
    case DType::kFp8:
    case DType::kFp8Row:
    case DType::kFp8Block:
    case DType::kMxfp8:
      return DType::kBf16;
    case DType::kBf16:
    case DType::kCompute:
      return DType::kFp16;
    default:
      return DType::kFp32;
  }
}

// The type whose coefficients count.
DType FittedType(DType type) {
  switch (type) {
    case DType::kNvfp4:
    case DType::kFp8Block:
    case DType::kFp32:
      return type;
    case DType::kFp8:
    case DType::kFp8Row:
    case DType::kMxfp8:
      return DType::kFp8;
    default:
      return DType::kBf16;
  }
}

}  // namespace

MatmulUnit MatmulUnitFor(const DeviceType& device, DType type) {
  while (Peak(device, type) <= 0 && type != DType::kFp32) type = NextWider(type);
  MatmulUnit unit;
  unit.runs = type;
  unit.peak_flops = Peak(device, type);
  unit.coefficients = DTypeName(FittedType(type));
  unit.borrowed = type == DType::kTf32;
  return unit;
}

double PowerDensity(const DeviceType& device) {
  const double peak = device.fp16_flops > 0 ? device.fp16_flops : device.fp32_flops;
  return device.tdp_watts > 0 ? peak / 1e12 / device.tdp_watts : 0;
}

double SpeedGrade(const DeviceType& device, absl::string_view coefficients) {
  const double clocks = device.sms * device.boost_mhz * 1e6;
  const bool fp32 = coefficients == "fp32" || device.fp16_flops <= 0;
  const double peak = fp32 ? device.fp32_flops : device.fp16_flops;
  return clocks > 0 ? peak / clocks : 0;
}

}  // namespace plancast
