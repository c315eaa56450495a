#include "strategy/recompute/recompute_set.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/embedded_file.h"
#include "base/suggest.h"
#include "proto/recompute_set.pb.h"
#include "proto/text_proto.h"
#include "strategy/recompute/recompute_set_files.h"

namespace plancast {
namespace {

std::vector<OpPattern> Patterns(
    const google::protobuf::RepeatedPtrField<proto::OpPattern>& patterns) {
  std::vector<OpPattern> out;
  for (const proto::OpPattern& p : patterns) out.push_back({p.name(), p.rule(), p.group()});
  return out;
}

struct Shipped {
  std::vector<RecomputeSet> sets;
  NormsOfProducts norms;
};

Shipped Read() {
  Shipped shipped;
  const auto append = [](const auto& patterns, std::vector<OpPattern>* all) {
    const std::vector<OpPattern> more = Patterns(patterns);
    all->insert(all->end(), more.begin(), more.end());
  };
  for (const EmbeddedFile& file : RecomputeSetFiles()) {
    const auto message = ParseTextProto<proto::RecomputeSets>(file.contents, file.path);
    PLANCAST_CHECK(message.ok()) << message.status().ToString();
    for (const proto::RecomputeSet& s : message->set()) {
      shipped.sets.push_back({s.word(), s.description(), Patterns(s.ops()), Patterns(s.keeps()),
                              Patterns(s.within()), s.discards(), s.region(),
                              s.keeps_every_other_product(), s.keeps_reduced()});
    }
    append(message->norms(), &shipped.norms.norms);
    append(message->products(), &shipped.norms.products);
  }
  return shipped;
}

const Shipped& All() {
  static const Shipped& shipped = *new Shipped(Read());
  return shipped;
}

}  // namespace

bool GlobMatches(absl::string_view pattern, absl::string_view text) {
  // Where the last star stands, and how much it has taken.
  size_t p = 0, t = 0, star = absl::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool OpPattern::Matches(absl::string_view op, absl::string_view op_rule,
                        absl::string_view op_group) const {
  return (name.empty() || GlobMatches(name, op)) && (rule.empty() || GlobMatches(rule, op_rule)) &&
         (group.empty() || group == op_group);
}

bool AnyMatches(absl::Span<const OpPattern> patterns, absl::string_view name,
                absl::string_view rule, absl::string_view group) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const OpPattern& p) { return p.Matches(name, rule, group); });
}

const std::vector<RecomputeSet>& RecomputeSets() { return All().sets; }

const NormsOfProducts& ShippedNormsOfProducts() { return All().norms; }

absl::StatusOr<const RecomputeSet*> FindRecomputeSet(absl::string_view word) {
  std::vector<std::string> words;
  for (const RecomputeSet& set : RecomputeSets()) {
    if (set.word == word) return &set;
    words.push_back(set.word);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no set of ops `", word, "` to recompute.", Offer(word, words)));
}

}  // namespace plancast
