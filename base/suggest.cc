#include "base/suggest.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace plancast {
namespace {

std::string Normalise(absl::string_view word) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(word), {{"-", "_"}});
}

// Edits (insert, delete, replace, swap of neighbours) that make `a` into `b`.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

// How far apart two names are for a reader. What starts or ends like the other
// is near however long the rest is: `h100` and `dgx-h100`.
size_t Distance(absl::string_view word, absl::string_view candidate) {
  const size_t edits = EditDistance(word, candidate);
  const bool part = word.size() >= 3 && candidate.size() >= 3 &&
                    (absl::StrContains(candidate, word) || absl::StrContains(word, candidate));
  return part ? std::min<size_t>(edits, 1) : edits;
}

size_t CommonPrefix(absl::string_view a, absl::string_view b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

}  // namespace

absl::string_view Nearest(absl::string_view word, const Words& candidates) {
  // The distance takes letters times letters; what is long is no typo of a name.
  constexpr size_t kLongest = 200;
  if (word.size() > kLongest) return {};
  const std::string wanted = Normalise(word);
  // A third of the letters may be wrong; of two letters, one.
  const size_t limit = wanted.size() < 2 ? 0 : std::max<size_t>(1, wanted.size() / 3);
  absl::string_view nearest;
  // Of equally distant candidates, the one that starts more alike.
  std::pair<size_t, size_t> least = {limit + 1, 0};
  for (absl::string_view candidate : candidates.views()) {
    const std::string name = Normalise(candidate);
    const std::pair<size_t, size_t> distance = {
        Distance(wanted, name), name.size() - std::min(name.size(), CommonPrefix(wanted, name))};
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(absl::string_view word, const Words& candidates) {
  const absl::string_view nearest = Nearest(word, candidates);
  return nearest.empty() ? "" : absl::StrCat(" Did you mean `", nearest, "`?");
}

std::string JoinQuoted(const Words& words, size_t limit) {
  const std::vector<absl::string_view>& all = words.views();
  // The last word takes no more room than "and 1 more".
  const size_t shown = all.size() <= limit + 1 ? all.size() : limit;
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&text, i == 0 ? "`" : ", `", all[i], "`");
  }
  if (shown < all.size()) absl::StrAppend(&text, " and ", all.size() - shown, " more");
  return text;
}

}  // namespace plancast
