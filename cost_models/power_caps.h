#ifndef PLANCAST_COST_MODELS_POWER_CAPS_H_
#define PLANCAST_COST_MODELS_POWER_CAPS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// What products keep of their rate where a board may draw less than the one that their
// coefficients were measured on (proto/kernel_cost.proto, PowerCap).
class PowerCaps {
 public:
  // Text proto of type PowerCaps. Errors: a GPU's type named twice, figures out of range.
  static absl::StatusOr<PowerCaps> Parse(absl::string_view text, absl::string_view what);
  // cost_models/data/power_caps.textproto.
  static const PowerCaps& Shipped();

  // Share of the rate on `gpu` in `dtype` where `power` times as much may be drawn; a power
  // of that share through what was measured, 1 where nothing has to be given up. Absent:
  // nothing was measured.
  std::optional<double> Kept(absl::string_view gpu, absl::string_view dtype, double power) const;

 private:
  struct Entry {
    std::string gpu, dtype;
    double exponent = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_POWER_CAPS_H_
