#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "executor/what_if/what_if.h"

namespace plancast {
namespace {

using Target = WhatIfChange::Target;

struct Word {
  absl::string_view word;
  Target target;
};
// Before a colon, and alone.
constexpr Word kPrefixes[] = {{"op", Target::kOp},
                              {"kernel", Target::kKernel},
                              {"purpose", Target::kPurpose},
                              {"collective", Target::kCollective},
                              {"device", Target::kDevice}};
constexpr Word kAlone[] = {{"compute", Target::kCompute},
                           {"communication", Target::kCommunication},
                           {"launch", Target::kLaunch},
                           {"sharing", Target::kSharing},
                           {"interference", Target::kInterference}};

// The factor on time.
absl::StatusOr<double> ParseFactor(absl::string_view text, absl::string_view change) {
  if (text == "free") return 0.0;
  double speed = 0;
  absl::string_view number = text;
  bool good = false;
  if (absl::ConsumeSuffix(&number, "x")) {
    good = absl::SimpleAtod(number, &speed);
  } else if (absl::ConsumeSuffix(&number, "%")) {
    good = absl::SimpleAtod(number, &speed);
    speed /= 100;
  }
  if (!good || !(speed >= 1e-6 && speed <= 1e6)) {
    return absl::InvalidArgumentError(absl::StrCat("`", text, "` in `", change,
                                                   "` is no factor. Write `2x` for twice as fast, "
                                                   "`80%` for 80 % of the speed, or `free`."));
  }
  return 1 / speed;
}

absl::StatusOr<WhatIfChange> ParseChange(absl::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == absl::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text,
                     "` does not say by how much. Write TARGET=FACTOR, such as `nic=2x` "
                     "or `op:attn=free`."));
  }
  WhatIfChange change;
  ASSIGN_OR_RETURN(change.time, ParseFactor(text.substr(equals + 1), text));
  const absl::string_view target = text.substr(0, equals);
  const size_t colon = target.find(':');
  const absl::string_view head = target.substr(0, colon);
  const std::optional<absl::string_view> rest = colon == absl::string_view::npos
                                                    ? std::nullopt
                                                    : std::make_optional(target.substr(colon + 1));
  for (const Word& alone : kAlone) {
    if (head == alone.word && !rest.has_value()) {
      change.target = alone.target;
      const bool all_or_nothing =
          alone.target == Target::kSharing || alone.target == Target::kInterference;
      if (all_or_nothing && change.time != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("`", text, "`: it is there or not. Write `", head, "=free`."));
      }
      return change;
    }
  }
  change.name = std::string(head);
  for (const Word& prefix : kPrefixes) {
    if (head != prefix.word) continue;
    if (!rest.has_value() || rest->empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", text, "` does not say which ", head, ". Write `", head, ":NAME=2x`."));
    }
    change.target = prefix.target;
    change.name = std::string(*rest);
  }
  const bool device = change.target == Target::kDevice;
  if (!device && change.target != Target::kLink) return change;
  if (change.time == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", text, "`: ", device ? "a device" : "a link",
                     " cannot be free; make it `1000x` as fast, or what uses it free."));
  }
  if (device) change.name.clear();
  if (rest.has_value() && (!absl::SimpleAtoi(*rest, &change.instance) || change.instance < 0)) {
    return absl::InvalidArgumentError(absl::StrCat("`", *rest, "` in `", text,
                                                   "` is no number of a ",
                                                   device ? "device" : "link", ". Count from 0."));
  }
  return change;
}

}  // namespace

std::string WhatIfChange::DebugString() const {
  std::string text;
  for (const Word& prefix : kPrefixes) {
    if (target == prefix.target) text = absl::StrCat(prefix.word, ":");
  }
  for (const Word& alone : kAlone) {
    if (target == alone.target) text = std::string(alone.word);
  }
  if (target == Target::kDevice) {
    absl::StrAppend(&text, instance);
  } else {
    absl::StrAppend(&text, name);
    if (instance >= 0) absl::StrAppend(&text, ":", instance);
  }
  return absl::StrCat(text, "=", time == 0 ? "free" : absl::StrFormat("%.6gx", 1 / time));
}

absl::StatusOr<std::vector<WhatIfChange>> ParseWhatIf(absl::string_view text) {
  std::vector<WhatIfChange> changes;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(changes.emplace_back(), ParseChange(absl::StripAsciiWhitespace(part)));
  }
  return changes;
}

}  // namespace plancast
