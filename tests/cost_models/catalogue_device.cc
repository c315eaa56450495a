#include "tests/cost_models/catalogue_device.h"

#include "base/status_macros.h"
#include "cluster/catalogue.h"

namespace plancast {

absl::StatusOr<DeviceType> CatalogueDevice(absl::string_view name) {
  ASSIGN_OR_RETURN(proto::Gpu gpu, FindGpu(name));
  DeviceType device;
  device.name = gpu.name();
  device.sms = gpu.sms();
  device.memory_bytes = gpu.memory_gb() * (1LL << 30);
  device.memory_bytes_per_s = gpu.memory_gb_per_s() * 1e9;
  device.l2_bytes = gpu.l2_mb() * (1 << 20);
  device.fp32_flops = gpu.fp32_tflops() * 1e12;
  device.tf32_flops = gpu.tf32_tflops() * 1e12;
  device.fp16_flops = gpu.fp16_tflops() * 1e12;
  device.bf16_flops = gpu.bf16_tflops() * 1e12;
  device.fp8_flops = gpu.fp8_tflops() * 1e12;
  device.fp4_flops = gpu.fp4_tflops() * 1e12;
  device.boost_mhz = gpu.boost_mhz();
  device.tdp_watts = gpu.tdp_watts();
  return device;
}

}  // namespace plancast
