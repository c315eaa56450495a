#include "compiler/bind/vocabulary.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

absl::Status NotYet(absl::string_view what) {
  return absl::UnimplementedError(
      absl::StrCat("not supported yet: a vocabulary spread over the stages (vocab_parallel) of ",
                   what, ". Use vocab_parallel=redis, or leave it out."));
}

}  // namespace

absl::StatusOr<std::vector<ModelCut>> VocabularyCuts(const ModelGraph& graph) {
  const absl::StatusOr<int> vocabulary = graph.FindDim(kVocabularyDim);
  if (!vocabulary.ok()) return NotYet("a model without one");
  const auto has = [&](const OpNode& op) {
    return std::find(op.factor_dims.begin(), op.factor_dims.end(), *vocabulary) !=
           op.factor_dims.end();
  };
  const auto last = static_cast<int>(graph.segments.size()) - 1;
  // A table of both is cut in the same parts.
  for (const TiedParameter& tie : graph.tied) {
    if (std::min(tie.first_segment, tie.second_segment) == 0 &&
        std::max(tie.first_segment, tie.second_segment) == last) {
      continue;
    }
    return NotYet("a model whose layers share weights");
  }
  const auto ops_of = [&](int segment) -> const std::vector<OpNode>& {
    return graph.bodies[graph.segments[segment].body].ops;
  };
  for (int s = 0; s <= last; ++s) {
    const bool any = std::any_of(ops_of(s).begin(), ops_of(s).end(), has);
    const bool end = s == 0 || s == last;
    if (any == end && !(end && graph.segments[s].repeat > 1) && last > 1) continue;
    return NotYet(absl::StrCat("a model where `", ModelGraph::PathOf(graph.segments[s]),
                               any ? "` has it, too" : "` does not have it"));
  }
  const std::vector<OpNode>&first = ops_of(0), &head = ops_of(last);
  const auto input_end = std::find_if_not(first.begin(), first.end(), has);
  const auto output = std::find_if(head.begin(), head.end(), has);
  if (input_end == first.begin() || std::any_of(input_end, first.end(), has) ||
      !std::all_of(output, head.end(), has)) {
    return NotYet("a model that does other things before it or after it");
  }
  ModelCut after_input{0, 0, static_cast<int>(input_end - first.begin())};
  if (input_end == first.end()) after_input = {1, 0, 0};
  return std::vector<ModelCut>{after_input, {last, 0, static_cast<int>(output - head.begin())}};
}

ResolvedSplit VocabularySplit() {
  return {SplitDirective("pp", {std::string(kVocabularyDim)}), ""};
}

}  // namespace plancast
