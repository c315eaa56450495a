#ifndef PLANCAST_STRATEGY_SHORT_FORM_H_
#define PLANCAST_STRATEGY_SHORT_FORM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plancast {

// The one-line form of a strategy, `dp=8,tp=8,pp=4,sp,mb=1,recompute=full`:
// every key of the language, each only if it was said. Values of enumerated
// keys are checked by the parser and kept as written. docs/strategy.md is the
// reference.
struct ShortForm {
  std::optional<int64_t> dp, tp, pp, vpp, cp, ep, etp, zero, hsdp, mb, accum;
  bool sp = false;
  std::optional<std::string> reshard, sync;  // on | off | N; each | last
  std::optional<int64_t> prefetch;           // units gathered ahead
  std::optional<int64_t> unit;               // layers that are one unit
  std::optional<std::string> recompute;      // none | selective | full | every | uniform
  std::optional<int64_t> recompute_layers;   // full:N, every:N, uniform:N
  std::vector<std::string> recompute_ops;    // selective:WORD+WORD, sorted
  std::optional<std::string> cp_type;        // as ContextParallel writes it
  std::optional<std::string> schedule, attn, vocab_parallel;
  // In canonical order. `overlap=none` is {"none"}: said, unlike an empty list.
  std::vector<std::string> overlap, offload;
  std::optional<int64_t> offload_layers;  // activations:N
  std::optional<int64_t> bucket_bytes, first_bucket_bytes;
  std::optional<std::string> optimizer;  // at-end | post-validated | in-backward
  std::vector<int64_t> layout;           // layers of each virtual stage, in model order
  std::vector<std::string> order;        // mesh axes, fastest first

  // Says nothing of recomputation any more.
  void ClearRecompute() {
    recompute = std::nullopt;
    recompute_layers = std::nullopt;
    recompute_ops.clear();
  }

  friend bool operator==(const ShortForm& a, const ShortForm& b);
};

// Parses any order of keys. Errors name the key, what is allowed and the
// nearest known word; a key given twice, a number that is not positive or too
// large are errors.
absl::StatusOr<ShortForm> ParseShortForm(absl::string_view text);

// Canonical text: keys in the order of the reference, only what was said;
// ParseShortForm(PrintShortForm(f)) == f.
std::string PrintShortForm(const ShortForm& form);

// `13+14x7`: one stage of 13 layers, then seven of 14.
std::string PrintLayout(absl::Span<const int64_t> layout);

// The keys of the language in canonical order.
std::vector<std::string> ShortFormKeys();

// OK, or an Unimplemented `not supported yet: KEY=VALUE` for the first key or
// value that is part of the language but not simulated by this version.
absl::Status CheckSupported(const ShortForm& form);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_SHORT_FORM_H_
