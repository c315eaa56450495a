#include "cost_models/power_caps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/embedded_file.h"
#include "base/status_macros.h"
#include "cost_models/power_caps_data.h"
#include "proto/kernel_cost.pb.h"
#include "proto/text_proto.h"

namespace plancast {

absl::StatusOr<PowerCaps> PowerCaps::Parse(absl::string_view text, absl::string_view what) {
  ASSIGN_OR_RETURN(const auto proto, ParseTextProto<proto::PowerCaps>(text, what));
  PowerCaps caps;
  for (const proto::PowerCap& cap : proto.cap()) {
    const auto wrong = [&](absl::string_view why) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": `", cap.gpu(), "`, ", cap.dtype(), ": ", why));
    };
    if (!(cap.watts() > 0 && cap.watts() < cap.board_watts() && cap.board_watts() <= 1e5)) {
      return wrong(absl::StrCat("watts is ", cap.watts(), " and board_watts ", cap.board_watts(),
                                "; the cap has to be above 0 and below the board's."));
    }
    if (!(cap.share() > 0 && cap.share() <= 1)) {
      return wrong(absl::StrCat("share is ", cap.share(), "; it has to be above 0, at most 1."));
    }
    if (caps.Kept(cap.gpu(), cap.dtype(), 1).has_value()) {
      return wrong("it is there twice. Keep one.");
    }
    const double exponent = std::log(cap.share()) / std::log(cap.watts() / cap.board_watts());
    caps.entries_.push_back({cap.gpu(), cap.dtype(), exponent});
  }
  return caps;
}

const PowerCaps& PowerCaps::Shipped() {
  static const PowerCaps* const caps = [] {
    const EmbeddedFile* file = FindByStem(PowerCapsData(), "power_caps");
    PLANCAST_CHECK(file != nullptr);
    auto parsed = Parse(file->contents, file->path);
    PLANCAST_CHECK_OK(parsed);
    return new PowerCaps(*std::move(parsed));
  }();
  return *caps;
}

std::optional<double> PowerCaps::Kept(absl::string_view gpu, absl::string_view dtype,
                                      double power) const {
  for (const Entry& entry : entries_) {
    if (entry.gpu != gpu || entry.dtype != dtype) continue;
    return std::pow(std::min(power, 1.0), entry.exponent);
  }
  return std::nullopt;
}

}  // namespace plancast
