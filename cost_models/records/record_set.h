#ifndef PLANCAST_COST_MODELS_RECORDS_RECORD_SET_H_
#define PLANCAST_COST_MODELS_RECORDS_RECORD_SET_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cost_models/records/record_store.h"
#include "graph/kernel_spec.h"

namespace plancast {

// A kernel as the records of one GPU know it.
struct MeasuredKernel {
  KernelSpec kernel;
  double seconds = 0;
  double sigma = 0;    // relative: how far repetitions and samples are apart
  std::string source;  // `cublas 12.4, measured 3 times (profile 2026-11-22)`
};

// Measured kernels that differ in shape alone.
struct MeasuredGroup {
  std::string name;  // `gemm bf16 forward`
  int dims = 0;      // of the shapes
  std::vector<MeasuredKernel> kernels;
  std::vector<double> points;  // `dims` logarithms to base 2 of sizes for each kernel
};

// What a store holds, in memory and grouped. Immutable; thread-safe.
class RecordSet {
 public:
  // Kernels of several libraries or versions that pass the filter count as one,
  // with the middle of their times. Left out are eager timings (`event_eager`)
  // below three times the least of their GPU and library: they measure the
  // host's launch.
  static absl::StatusOr<std::shared_ptr<const RecordSet>> Load(const RecordStore& store,
                                                               const RecordFilter& filter);

  // Exactly that kernel; nullptr on a miss, and where a fused epilogue makes it
  // another one.
  const MeasuredKernel* Find(const KernelSpec& kernel, absl::string_view gpu) const;
  // Kernels of its op, type and layout; nullptr if there are none.
  const MeasuredGroup* FindGroup(const KernelSpec& kernel, absl::string_view gpu) const;
  // Relative error that all records of a GPU share: how far the middle of one
  // source is from another's where both measured the same kernels.
  double SharedSigma(absl::string_view gpu) const;

 private:
  struct Place {
    int group = 0, kernel = 0;
  };

  std::vector<MeasuredGroup> groups_;
  absl::flat_hash_map<std::string, int> group_of_;  // GPU, op, type, layout
  absl::flat_hash_map<std::string, Place> exact_;   // the same and shape
  absl::flat_hash_map<std::string, double> shared_sigma_;
};

// The logarithms to base 2 of the sizes that tell kernels of one group apart.
std::vector<double> ShapePoint(const KernelSpec& kernel);

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_RECORDS_RECORD_SET_H_
