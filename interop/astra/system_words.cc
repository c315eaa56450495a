#include "interop/astra/system_words.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/suggest.h"

namespace plancast {
namespace {

absl::Status Unknown(absl::string_view word, const Words& known) {
  return absl::InvalidArgumentError(absl::StrCat("unknown word `", word, "`; known are ",
                                                 JoinQuoted(known), ".", DidYouMean(word, known)));
}

}  // namespace

absl::StatusOr<AstraWiring> AstraWiringFrom(absl::string_view word) {
  if (word == "Ring") return AstraWiring::kRing;
  if (word == "FullyConnected") return AstraWiring::kFullyConnected;
  if (word == "Switch") return AstraWiring::kSwitch;
  return Unknown(word, {"Ring", "FullyConnected", "Switch"});
}

absl::StatusOr<AstraAlgorithm> AstraAlgorithmFrom(absl::string_view word) {
  using Kind = AstraAlgorithm::Kind;
  if (word == "ring") return AstraAlgorithm{Kind::kRing};
  if (word == "oneRing") return AstraAlgorithm{Kind::kRing, /*one=*/true};
  if (word == "halvingDoubling") return AstraAlgorithm{Kind::kHalvingDoubling};
  if (word == "oneHalvingDoubling") return AstraAlgorithm{Kind::kHalvingDoubling, /*one=*/true};
  if (word == "doubleBinaryTree") return AstraAlgorithm{Kind::kDoubleBinaryTree};
  absl::string_view rest = word;
  const bool one = absl::ConsumePrefix(&rest, "oneDirect");
  if (one || absl::ConsumePrefix(&rest, "direct")) {
    int window = 0;
    if (rest.empty() || (absl::SimpleAtoi(rest, &window) && window > 0)) {
      return AstraAlgorithm{Kind::kDirect, one, window};
    }
  }
  return Unknown(word, {"ring", "direct", "halvingDoubling", "doubleBinaryTree", "oneRing",
                        "oneDirect", "oneHalvingDoubling"});
}

absl::StatusOr<AstraSystem::Order> AstraOrderFrom(absl::string_view word) {
  if (word == "LIFO") return AstraSystem::Order::kLifo;
  if (word == "FIFO") return AstraSystem::Order::kFifo;
  if (word == "EXPLICIT") return AstraSystem::Order::kExplicit;
  return Unknown(word, {"LIFO", "FIFO", "EXPLICIT"});
}

absl::StatusOr<bool> AstraOptimizationFrom(absl::string_view word) {
  if (word == "localBWAware") return true;
  if (word == "baseline") return false;
  return Unknown(word, {"baseline", "localBWAware"});
}

}  // namespace plancast
