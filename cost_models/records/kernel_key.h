#ifndef PLANCAST_COST_MODELS_RECORDS_KERNEL_KEY_H_
#define PLANCAST_COST_MODELS_RECORDS_KERNEL_KEY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/kernel_spec.h"

namespace plancast {

// What a measured kernel is known by. Equal keys are the same kernel; anything
// else is another one, a new version of the library too.
//   op       `gemm`, `convolution`, `attention`: their time does not depend on
//            the rule; else family and rule, `memory/rms_norm`, `optimizer/adam`
//   shape    sizes by name in a fixed order, `batch=1 m=4096 n=1024 k=512`
//   dtype    `bf16`; of attention and memory the type that activations are kept in
//   layout   which pass and how operands lie: `forward`, `wgrad+fp32`,
//            `forward nhwc`, `causal`, `causal backward`; may be empty
//   gpu      as DeviceType::name
//   library, version   whose kernel; may be empty
struct KernelKey {
  std::string op, shape, dtype, layout;
  std::string gpu, library, version;

  friend bool operator==(const KernelKey& a, const KernelKey& b) {
    return a.op == b.op && a.shape == b.shape && a.dtype == b.dtype && a.layout == b.layout &&
           a.gpu == b.gpu && a.library == b.library && a.version == b.version;
  }
  std::string DebugString() const;
};

// The key without GPU, library and version. Of products with a fused epilogue
// the key is that of the product alone (see MovesMore).
KernelKey KeyOf(const KernelSpec& kernel);

// The kernel that a key names, with the FLOPs and bytes of that kernel alone.
// Errors: a word, size or type that KeyOf never writes.
absl::StatusOr<KernelSpec> SpecOf(const KernelKey& key);

// Whether a fused epilogue makes the kernel move notably more bytes than the
// one that its key names: then a record of that is near, not equal.
bool MovesMore(const KernelSpec& kernel);

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_RECORDS_KERNEL_KEY_H_
