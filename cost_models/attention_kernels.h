#ifndef PLANCAST_COST_MODELS_ATTENTION_KERNELS_H_
#define PLANCAST_COST_MODELS_ATTENTION_KERNELS_H_

#include <optional>
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

  // Text proto of type AttentionKernels. Errors: a name given twice for one architecture, a next or
  // training one that is not further down, a factor below 1 or above 100, both a next and a
  // training one.
  static absl::StatusOr<AttentionKernels> Parse(absl::string_view text, absl::string_view what);
  // cost_models/data/attention_kernels.textproto.
  static const AttentionKernels& Shipped();

  // Time of a kernel of `library` that trains over that of one of `measured`, on a chip of an
  // architecture (empty: of none that has kernels of its own): below 1 where what was measured is
  // of inference, or an older one of this very architecture. An empty `library`, or one that
  // neither took the place of `measured` nor left it to that, is what was measured, as it trains.
  double Slowdown(absl::string_view library, absl::string_view measured,
                  absl::string_view architecture, bool backward) const;
  bool Knows(absl::string_view library) const;

 private:
  struct Entry {
    double Factor(bool of_backward) const { return of_backward ? backward : forward; }

    std::string name, architecture;
    std::string follows;  // the next one's name, or that of the one that trains
    bool serves = false;  // ... which it is
    double forward = 1, backward = 1;
  };
  // The architecture's own, else the one of all; or null.
  const Entry* Find(absl::string_view name, absl::string_view architecture) const;
  // What the way from one to the other multiplies a time with; none: it does not lead there.
  std::optional<double> Way(const Entry* from, const Entry& to, absl::string_view architecture,
                            bool backward) const;

  std::vector<Entry> entries_;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_ATTENTION_KERNELS_H_
