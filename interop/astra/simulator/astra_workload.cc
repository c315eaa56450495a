#include "interop/astra/simulator/astra_workload.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

absl::Status Bad(absl::string_view what, uint64_t id, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": node ", id, " ", why));
}

// Whether every node can run, by counting off dependencies.
bool Acyclic(const AstraProgram& program) {
  const size_t n = program.nodes.size();
  std::vector<int32_t> left(n), begin(n + 1), next;
  for (size_t i = 0; i < n; ++i) left[i] = program.dep_begin[i + 1] - program.dep_begin[i];
  for (const int32_t dep : program.deps) ++begin[dep + 1];
  for (size_t i = 0; i < n; ++i) begin[i + 1] += begin[i];
  std::vector<int32_t> waiting(program.deps.size()), cursor(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < n; ++i) {
    for (int32_t d = program.dep_begin[i]; d < program.dep_begin[i + 1]; ++d) {
      waiting[cursor[program.deps[d]]++] = static_cast<int32_t>(i);
    }
    if (left[i] == 0) next.push_back(static_cast<int32_t>(i));
  }
  size_t done = 0;
  for (; done < next.size(); ++done) {
    for (int32_t w = begin[next[done]]; w < begin[next[done] + 1]; ++w) {
      if (--left[waiting[w]] == 0) next.push_back(waiting[w]);
    }
  }
  return done == n;
}

}  // namespace

void AstraProgram::Add(AstraNode node, const std::vector<int32_t>& waits_for) {
  nodes.push_back(node);
  deps.insert(deps.end(), waits_for.begin(), waits_for.end());
  dep_begin.push_back(static_cast<int32_t>(deps.size()));
}

absl::Status AstraWorkload::Verify(int64_t npus) const {
  if (static_cast<int64_t>(program_of.size()) != npus) {
    return absl::InvalidArgumentError(absl::StrCat("there are traces of ", program_of.size(),
                                                   " ranks; the network has ", npus, " NPUs"));
  }
  for (const int32_t p : program_of) {
    if (p < 0 || p >= static_cast<int32_t>(programs.size())) {
      return absl::InvalidArgumentError("a rank has no program");
    }
  }
  for (const AstraGroup& group : groups) {
    const std::string name = absl::StrCat("group `", group.id, "`");
    if (group.id < 1 || group.id > 1000000) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": names of groups are numbers from 1 to 1000000"));
    }
    std::vector<int64_t> ranks = group.ranks;
    std::sort(ranks.begin(), ranks.end());
    if (ranks.empty() || ranks.front() < 0 || ranks.back() >= npus ||
        std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " must list different ranks of 0 to ", npus - 1));
    }
  }
  for (size_t p = 0; p < programs.size(); ++p) {
    const AstraProgram& program = programs[p];
    const std::string what = absl::StrCat("program ", p);
    for (size_t i = 0; i < program.nodes.size(); ++i) {
      const AstraNode& node = program.nodes[i];
      if (i > 0 && program.nodes[i - 1].id >= node.id) return Bad(what, node.id, "is out of order");
      for (int32_t d = program.dep_begin[i]; d < program.dep_begin[i + 1]; ++d) {
        if (program.deps[d] < 0 || program.deps[d] >= static_cast<int32_t>(program.nodes.size())) {
          return Bad(what, node.id, "waits for a node that is not there");
        }
      }
      if (node.group >= static_cast<int32_t>(groups.size()) ||
          node.dims >= static_cast<int32_t>(involved.size())) {
        return Bad(what, node.id, "names a group that is not there");
      }
      const bool point_to_point =
          node.kind == AstraNodeKind::kSend || node.kind == AstraNodeKind::kRecv;
      if (point_to_point && (node.peer < 0 || node.peer >= npus)) {
        return Bad(what, node.id, absl::StrCat("names rank ", node.peer, "; there are ", npus));
      }
      if ((point_to_point || node.kind == AstraNodeKind::kCollective) &&
          node.collective != AstraCollective::kReplay && node.bytes < 1) {
        return Bad(what, node.id, "moves no bytes");
      }
    }
    if (!Acyclic(program)) return absl::InvalidArgumentError(what + ": nodes wait in a circle");
  }
  return absl::OkStatus();
}

}  // namespace plancast
