#include "executor/what_if/slower_choices.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "collectives/realise.h"
#include "executor/comm_uses.h"
#include "executor/realise.h"

namespace plancast {
namespace {

// Less than this more is the rounding of chunks, not a choice.
constexpr double kLeastChange = 1.01;
constexpr size_t kMost = 3;

// Whether some link is faster and none slower.
bool OnlyFaster(const Machine& before, const Machine& after) {
  if (before.link_classes().size() != after.link_classes().size()) return false;
  bool faster = false;
  for (size_t i = 0; i < before.link_classes().size(); ++i) {
    const double was = before.link_classes()[i].bytes_per_s;
    const double is = after.link_classes()[i].bytes_per_s;
    if (is < was) return false;
    faster = faster || is > was;
  }
  return faster;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SlowerChoices(const ExecutionGraph& graph,
                                                       const Machine& before, const Machine& after,
                                                       const RuntimeParams& runtime) {
  if (!OnlyFaster(before, after)) return std::vector<std::string>();
  ASSIGN_OR_RETURN(const CommUses uses, FindCommUses(graph));
  CommPricer old_prices(graph, before, runtime), new_prices(graph, after, runtime);
  std::set<std::pair<double, std::string>> found;  // by minus the picoseconds more
  for (const CommUse& use : uses.uses) {
    ASSIGN_OR_RETURN(const int32_t old_index, old_prices.Price(use.comm, use.group));
    ASSIGN_OR_RETURN(const int32_t new_index, new_prices.Price(use.comm, use.group));
    const RealisedCollective& was = old_prices.realised()[old_index];
    const RealisedCollective& is = new_prices.realised()[new_index];
    if (was.algorithm == is.algorithm && was.protocol == is.protocol) continue;
    const auto old_time = static_cast<double>(AloneTime(before, was));
    const auto new_time = static_cast<double>(AloneTime(after, is));
    if (new_time < kLeastChange * old_time) continue;
    const CommSpec& comm = graph.comms[use.comm];
    found.emplace(
        old_time - new_time,
        absl::StrFormat("the library chooses %s/%s for `%s` of %.3g MB over %d devices at the "
                        "faster links, where it chose %s/%s: %.3g ms in place of %.3g",
                        is.algorithm, is.protocol, kCollectiveKindNames[comm.kind],
                        static_cast<double>(comm.bytes) * 1e-6, use.group.size(), was.algorithm,
                        was.protocol, new_time * 1e-9, old_time * 1e-9));
  }
  std::vector<std::string> sentences;
  for (const auto& [more, sentence] : found) {
    if (sentences.size() == kMost) break;
    sentences.push_back(sentence);
  }
  return sentences;
}

}  // namespace plancast
