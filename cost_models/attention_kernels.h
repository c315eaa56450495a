#ifndef PLANCAST_COST_MODELS_ATTENTION_KERNELS_H_
#define PLANCAST_COST_MODELS_ATTENTION_KERNELS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// Libraries of fused attention, each with the faster one that took its place, and kernels of
// inference, each with the one that trains (proto/kernel_cost.proto, AttentionKernel).
class AttentionKernels {
 public:
  // As `library`: the very kernels that were measured, though they be of inference.
  static constexpr absl::string_view kAsMeasured = "measured";

  // Text proto of type AttentionKernels. Errors: a name given twice, a next or training one that
  // is not further down, a factor below 1 or above 100, both a next and a training one.
  static absl::StatusOr<AttentionKernels> Parse(absl::string_view text, absl::string_view what);
  // cost_models/data/attention_kernels.textproto.
  static const AttentionKernels& Shipped();

  // Time of a kernel of `library` that trains over that of one of `measured`: below 1 only where
  // what was measured is of inference. An empty `library`, or one whose place `measured` did not
  // take, is what was measured, as it trains.
  double Slowdown(absl::string_view library, absl::string_view measured, bool backward) const;
  bool Knows(absl::string_view library) const { return Find(library) >= 0; }

 private:
  struct Entry {
    double Factor(bool of_backward) const { return of_backward ? backward : forward; }

    std::string name;
    int next = -1, training = -1;
    double forward = 1, backward = 1;
  };
  int Find(absl::string_view name) const;

  std::vector<Entry> entries_;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_ATTENTION_KERNELS_H_
