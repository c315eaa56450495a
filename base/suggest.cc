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

// The words of a name: what stands between dashes, and letters before digits, so
// `llama3-8b` and `Llama-3-8B` have the same.
std::vector<std::string> WordsOf(absl::string_view normalised) {
  std::vector<std::string> words(1);
  char last = '_';
  for (const char c : normalised) {
    if (absl::ascii_isdigit(c) && absl::ascii_isalpha(last)) words.emplace_back();
    if (absl::ascii_isalnum(c)) {
      words.back() += c;
    } else {
      words.emplace_back();
    }
    last = c;
  }
  words.erase(std::remove(words.begin(), words.end(), ""), words.end());
  return words;
}

// Whether `all` has the words of `some` in their order.
bool HasWords(const std::vector<std::string>& all, const std::vector<std::string>& some) {
  auto at = all.begin();
  for (const std::string& word : some) {
    at = std::find(at, all.end(), word);
    if (at == all.end()) return false;
    ++at;
  }
  return true;
}

size_t CommonPrefix(absl::string_view a, absl::string_view b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

// How far apart two names are for a reader; smaller is nearer.
using Distance = std::pair<size_t, size_t>;

Distance DistanceOf(absl::string_view word, absl::string_view candidate) {
  const size_t edits = EditDistance(word, candidate);
  const bool long_enough = word.size() >= 3 && candidate.size() >= 3;
  bool part =
      long_enough && (absl::StrContains(candidate, word) || absl::StrContains(word, candidate));
  if (long_enough && !part) {
    const std::vector<std::string> mine = WordsOf(word), theirs = WordsOf(candidate);
    part = !mine.empty() && !theirs.empty() && (HasWords(mine, theirs) || HasWords(theirs, mine));
  }
  // Parts are near however long the rest is, right behind a slip of one letter, and the
  // candidates' own order decides among them.
  constexpr size_t kPart = 1000;
  if (part && edits > 1) return {1, kPart};
  // Of equally distant candidates, the one that starts more alike.
  return {edits, candidate.size() - std::min(candidate.size(), CommonPrefix(word, candidate))};
}

}  // namespace

std::vector<absl::string_view> NearestFirst(absl::string_view word, const Words& candidates,
                                            size_t most) {
  // The distance takes letters times letters; what is long is no typo of a name.
  constexpr size_t kLongest = 200;
  if (word.size() > kLongest) return {};
  const std::string wanted = Normalise(word);
  // A third of the letters may be wrong; of two letters, one.
  const size_t limit = wanted.size() < 2 ? 0 : std::max<size_t>(1, wanted.size() / 3);
  std::vector<std::pair<Distance, absl::string_view>> near;
  for (absl::string_view candidate : candidates.views()) {
    const Distance distance = DistanceOf(wanted, Normalise(candidate));
    if (distance.first <= limit) near.emplace_back(distance, candidate);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<absl::string_view> names;
  for (const auto& [distance, name] : near) {
    if (names.size() < most) names.push_back(name);
  }
  return names;
}

absl::string_view Nearest(absl::string_view word, const Words& candidates) {
  const std::vector<absl::string_view> near = NearestFirst(word, candidates, 1);
  return near.empty() ? absl::string_view() : near[0];
}

std::string Offer(absl::string_view word, const Words& candidates) {
  constexpr size_t kMost = 5;
  const std::vector<absl::string_view>& all = candidates.views();
  std::vector<absl::string_view> near = NearestFirst(word, candidates, kMost);
  std::string text;
  if (!near.empty()) {
    absl::StrAppend(&text, " Did you mean `", near[0], "`?");
    near.erase(near.begin());
  }
  if (all.size() <= kMost) {
    if (!all.empty()) absl::StrAppend(&text, " There are ", JoinQuoted(all, kMost), ".");
  } else if (!text.empty()) {
    if (!near.empty()) absl::StrAppend(&text, " Like it are ", JoinQuoted(near, kMost), ".");
  } else {
    const std::vector<absl::string_view> first(all.begin(), all.begin() + kMost);
    absl::StrAppend(&text, " There are ", JoinQuoted(first, kMost), " and ", all.size() - kMost,
                    " more.");
  }
  return text;
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
