#ifndef PLANCAST_BASE_SUGGEST_H_
#define PLANCAST_BASE_SUGGEST_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// The ends of error messages about a name that is not there.

namespace plancast {

// Views of words from a braced list or any container of strings. A parameter
// type only: it must not outlive its argument.
class Words {
 public:
  Words(std::initializer_list<absl::string_view> words) : views_(words) {}  // NOLINT
  template <typename Container>
  Words(const Container& words) : views_(words.begin(), words.end()) {}  // NOLINT

  const std::vector<absl::string_view>& views() const { return views_; }

 private:
  std::vector<absl::string_view> views_;
};

// " Did you mean `x`?" with the candidate nearest to `word`, or "" when none is
// near. Letter case and `-` against `_` cost nothing.
std::string DidYouMean(absl::string_view word, const Words& candidates);

// The candidate itself, or an empty view.
absl::string_view Nearest(absl::string_view word, const Words& candidates);

// Those near to `word`, nearest first, at most `most`. Near is what differs in a
// few letters, what is a part of the other (`h100` of `dgx-h100`), and what has
// the words of the other in their order (`Meta-Llama-3-8B` those of `llama3-8b`).
std::vector<absl::string_view> NearestFirst(absl::string_view word, const Words& candidates,
                                            size_t most = 5);

// The end of an error about a name that is not there, hint first and at most
// five names: " Did you mean `x`? Like it are `y`, `z`." where some are near,
// " There are `a`, `b`, `c`, `d`, `e` and 53 more." where none is. Of five
// candidates or fewer all are named.
std::string Offer(absl::string_view word, const Words& candidates);

// "`a`, `b`, `c`". A list longer than `limit` ends with "and 12 more".
std::string JoinQuoted(const Words& words, size_t limit = 20);

}  // namespace plancast

#endif  // PLANCAST_BASE_SUGGEST_H_
