#ifndef PLANCAST_COST_MODELS_ATTENTION_KERNELS_H_
#define PLANCAST_COST_MODELS_ATTENTION_KERNELS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// Libraries of fused attention, each with the faster one that took its place
// (proto/kernel_cost.proto, AttentionKernel).
class AttentionKernels {
 public:
  // Text proto of type AttentionKernels. Errors: a name given twice, a next one that is not
  // further down, a factor below 1 or above 100.
  static absl::StatusOr<AttentionKernels> Parse(absl::string_view text, absl::string_view what);
  // cost_models/data/attention_kernels.textproto.
  static const AttentionKernels& Shipped();

  // Time of a kernel of `library` over that of one of `measured`, at least 1: 1 too where
  // either is empty, or `measured` is none of those that took its place.
  double Slowdown(absl::string_view library, absl::string_view measured, bool backward) const;
  bool Knows(absl::string_view library) const { return Find(library) >= 0; }

 private:
  struct Entry {
    std::string name;
    int next = -1;
    double forward = 1, backward = 1;
  };
  int Find(absl::string_view name) const;

  std::vector<Entry> entries_;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_ATTENTION_KERNELS_H_
