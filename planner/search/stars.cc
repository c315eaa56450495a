#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "planner/search/space.h"
#include "strategy/choose_plan.h"
#include "strategy/short_form.h"

// What `*` stands for where that depends on the rest of a plan.

namespace plancast {
namespace {

constexpr int64_t kFewer = 2;  // layers that the first and the last stage go without, at most

// Each once, in order.
void Add(std::string text, std::vector<std::string>* texts) {
  if (std::find(texts->begin(), texts->end(), text) == texts->end()) {
    texts->push_back(std::move(text));
  }
}

// As equal as can be where the first stage has `first` layers less than the others and the last
// `last`: the surplus is missing from the stages before the last. Empty: there are too few layers.
std::vector<int64_t> FewerAtTheEnds(int64_t layers, int64_t stages, int64_t first, int64_t last) {
  const int64_t most = (layers + first + last + stages - 1) / stages;
  int64_t missing = most * stages - first - last - layers;
  std::vector<int64_t> layout(stages, most);
  layout.front() -= first;
  layout.back() -= last;
  for (int64_t stage = stages - 2; stage > 0 && missing > 0; --stage, --missing) --layout[stage];
  const bool works = missing == 0 && *std::min_element(layout.begin(), layout.end()) > 0;
  return works ? layout : std::vector<int64_t>();
}

}  // namespace

std::vector<std::string> RecomputesOn(const std::vector<std::string>& said, int64_t layers,
                                      const SearchBounds& bounds) {
  std::vector<std::string> texts;
  for (const std::string& text : said) {
    absl::string_view mode = text;
    if (!absl::ConsumeSuffix(&mode, ":*")) {
      Add(text, &texts);
    } else if (mode == "selective") {
      for (const std::string& set : bounds.recompute_sets) Add(set, &texts);
    } else {
      // All layers are `full`, and every one, and groups of one.
      const int64_t least = mode == "full" ? 1 : 2, most = mode == "full" ? layers - 1 : layers;
      for (int64_t n = least; n <= most; ++n) Add(absl::StrCat(mode, ":", n), &texts);
    }
  }
  return texts;
}

std::vector<std::string> LayoutsOn(const std::vector<std::string>& said, int64_t stages,
                                   const PlanContext& context) {
  if (said.empty() || stages == 1) return {""};
  std::vector<std::string> texts;
  const std::vector<int64_t> even = DefaultLayout(context.layers, stages);
  const auto add = [&](const std::vector<int64_t>& layout) {
    if (layout.empty()) return;
    Add(layout == even ? "" : absl::StrCat(",layout=", PrintLayout(layout)), &texts);
  };
  for (const std::string& text : said) {
    if (text == "even" || text == "*") Add("", &texts);
    if ((text == "balanced" || text == "*") && context.deal) add(context.deal(stages));
    if (text == "*") {
      for (int64_t first = 0; first <= kFewer; ++first) {
        for (int64_t last = 0; last <= kFewer; ++last) {
          add(FewerAtTheEnds(context.layers, stages, first, last));
        }
      }
    } else if (text != "even" && text != "balanced") {
      Add(absl::StrCat(",layout=", text), &texts);
    }
  }
  return texts;
}

std::vector<std::string> OrdersOn(const std::vector<std::string>& said, int64_t dp, int64_t cp,
                                  int64_t pp) {
  if (said.empty()) return {""};
  std::vector<std::string> texts;
  for (const std::string& text : said) {
    if (text != "*") {
      Add(absl::StrCat(",order=", text), &texts);
      continue;
    }
    Add("", &texts);  // cp-dp-pp
    const std::vector<std::pair<std::string, int64_t>> axes = {{"cp", cp}, {"dp", dp}, {"pp", pp}};
    std::vector<std::string> wide, narrow;
    for (const auto& [name, ranks] : axes) {
      if (ranks > 1) wide.push_back(name);
      if (ranks == 1 && name != "cp") narrow.push_back(name);
    }
    while (std::next_permutation(wide.begin(), wide.end())) {
      std::vector<std::string> order = {"tp"};
      order.insert(order.end(), wide.begin(), wide.end());
      order.insert(order.end(), narrow.begin(), narrow.end());
      Add(absl::StrCat(",order=", absl::StrJoin(order, "-")), &texts);
    }
  }
  return texts;
}

}  // namespace plancast
