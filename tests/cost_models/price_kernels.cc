// Prices the kernels named on stdin with the shipped cost models, one per line:
//   gemm GPU DTYPE BATCH M N K PASS ACCUMULATE   (PASS 0 forward, 1 dgrad, 2 wgrad)
//   convolution GPU DTYPE M N K PASS WINDOW STRIDE BYTES   (channels last)
//   attention GPU DTYPE BATCH Q_LEN KV_LEN HEADS KV_HEADS DIM DIM_V CAUSAL BACKWARD
//   memory GPU BYTES
// and prints seconds, one per line.

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "cost_models/kernel_cost.h"
#include "tests/cost_models/catalogue_device.h"

namespace {

using plancast::DeviceType;

plancast::KernelSpec Read(std::istream& in, DeviceType& device) {
  std::string family, gpu, dtype;
  in >> family >> gpu;
  device = *plancast::CatalogueDevice(gpu);
  plancast::KernelSpec spec;
  if (family == "memory") {
    spec.family = plancast::KernelFamily::kMemory;
    in >> spec.read_bytes;
    return spec;
  }
  in >> dtype;
  spec.dtype = *plancast::ParseDType(dtype);
  if (family == "gemm") {
    int pass = 0;
    spec.family = plancast::KernelFamily::kGemm;
    in >> spec.batch >> spec.m >> spec.n >> spec.k >> pass >> spec.accumulate_fp32;
    spec.pass = static_cast<plancast::GemmPass>(pass);
  } else if (family == "convolution") {
    int pass = 0;
    spec.family = plancast::KernelFamily::kConvolution;
    in >> spec.m >> spec.n >> spec.k >> pass >> spec.window >> spec.stride >> spec.read_bytes;
    spec.pass = static_cast<plancast::GemmPass>(pass);
    spec.channels_last = true;
  } else {
    spec.family = plancast::KernelFamily::kAttention;
    in >> spec.batch >> spec.q_len >> spec.kv_len >> spec.heads >> spec.kv_heads >> spec.head_dim >>
        spec.head_dim_v >> spec.causal >> spec.backward;
  }
  return spec;
}

}  // namespace

int main() {
  auto model = plancast::DefaultKernelCostModel();
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    DeviceType device;
    plancast::KernelSpec spec = Read(in, device);
    if (!in) {
      std::cerr << "cannot read `" << line << "`\n";
      return 2;
    }
    std::printf("%.9e\n", model->Estimate(spec, device)->seconds_alone);
  }
  return 0;
}
