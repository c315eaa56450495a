#ifndef PLANCAST_STRATEGY_SHORT_FORM_H_
#define PLANCAST_STRATEGY_SHORT_FORM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// The one-line form of a strategy, `dp=8,tp=8,pp=4,sp,mb=1,recompute=full`:
// every key of the language, each only if it was said. Values of enumerated
// keys are checked by the parser and kept as written.
struct ShortForm {
  std::optional<int64_t> dp, tp, pp, vpp, cp, ep, etp, zero, hsdp, mb, accum;
  bool sp = false;
  std::optional<std::string> recompute;        // none | selective | full
  std::optional<int64_t> recompute_layers;     // full:N
  std::optional<std::string> schedule, attn, vocab_parallel;
  std::vector<std::string> overlap, offload;   // in canonical order
  std::optional<int64_t> bucket_bytes;
  std::vector<int64_t> layout;
  std::vector<std::string> order;

  friend bool operator==(const ShortForm& a, const ShortForm& b);
};

// Parses any order of keys. Errors name the key, what is allowed and the
// nearest known word; a key given twice, a number that is not positive or too
// large are errors.
absl::StatusOr<ShortForm> ParseShortForm(absl::string_view text);

// Canonical text: keys in the order of the reference, only what was said;
// ParseShortForm(PrintShortForm(f)) == f.
std::string PrintShortForm(const ShortForm& form);

// OK, or `not supported yet: KEY` for the first key or value that is part of
// the language but not simulated by this version.
absl::Status CheckSupported(const ShortForm& form);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SHORT_FORM_H_
