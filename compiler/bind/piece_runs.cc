#include "compiler/bind/piece_runs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace plancast {
namespace {

// The first `parts` of a path of an op.
std::string ModuleAt(const std::string& path, int parts) {
  std::vector<std::string> all = absl::StrSplit(path, '.');
  all.resize(std::min<size_t>(all.size(), parts));
  return absl::StrJoin(all, ".");
}

}  // namespace

bool GoesThroughUnit(const ResolvedPieces& said, const Resolved& told, const Segment& segment) {
  const std::string path = ModelGraph::PathOf(segment);
  return segment.in_list() && said.directive.micro_batches > 1 && !told.unit_source.empty() &&
         said.source == told.unit_source &&
         said.depth == 1 + std::count(path.begin(), path.end(), '.');
}

void SortPieces(std::vector<PieceRun>* runs) {
  std::stable_sort(runs->begin(), runs->end(),
                   [](const PieceRun& a, const PieceRun& b) { return a.depth < b.depth; });
}

absl::StatusOr<std::vector<PieceRun>> PieceRunsOf(const ModelGraph& graph, const Segment& segment,
                                                  const std::vector<Resolved>& directives) {
  std::vector<PieceRun> runs;
  std::map<std::pair<int, std::string>, size_t> of;  // by depth and module
  const std::vector<OpNode>& ops = graph.bodies[segment.body].ops;
  for (size_t o = 0; o < directives.size(); ++o) {
    for (const ResolvedPieces& said : directives[o].pieces) {
      if (said.directive.micro_batches <= 1) continue;
      const std::string path = absl::StrCat(ModelGraph::PathOf(segment), ".", ops[o].name);
      const std::pair<int, std::string> module(said.depth, ModuleAt(path, said.depth));
      const auto [known, inserted] = of.try_emplace(module, runs.size());
      const int op = static_cast<int>(o);
      if (inserted) {
        const std::vector<int64_t>& ongoing = said.directive.max_ongoing;
        runs.push_back({op, op, said.directive.micro_batches, ongoing.empty() ? 0 : ongoing[0],
                        said.depth, said.source, GoesThroughUnit(said, directives[o], segment)});
      }
      PieceRun& run = runs[known->second];
      if (run.end != op && !inserted) {
        return absl::InvalidArgumentError(absl::StrCat(
            "`", said.source, "`: `micro_batches: ", run.pieces, "`: `", ops[o - 1].name,
            "` runs between ops of `", module.second, "`. Name a node that holds it too."));
      }
      run.end = op + 1;
    }
  }
  SortPieces(&runs);
  return runs;
}

}  // namespace plancast
