#include "interop/chakra/verify_traces.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

using Kind = ChakraTrace::Kind;
using Node = ChakraTrace::Node;

absl::Status Bad(int64_t rank, const Node& node, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("rank ", rank, ": node ", node.id, " (`", node.name.substr(0, 80), "`) ", why));
}

absl::Status CheckNodes(int64_t rank, const ChakraTrace& trace, int64_t ranks,
                        const CommGroups& groups) {
  for (const Node& node : trace.nodes) {
    if (node.kind == Kind::kSend || node.kind == Kind::kRecv) {
      const bool send = node.kind == Kind::kSend;
      const int64_t peer = send ? node.dst : node.src, self = send ? node.src : node.dst;
      if (peer >= ranks) {
        return Bad(rank, node, absl::StrCat("names rank ", peer, "; there are ", ranks));
      }
      if (peer == rank) return Bad(rank, node, "is a message to the rank itself");
      if (self >= 0 && self != rank) {
        return Bad(rank, node, absl::StrCat("is a ", send ? "send" : "receive", " of rank ", self));
      }
    }
    if (node.kind != Kind::kCollective || node.group == 0) continue;
    const auto group = groups.find(node.group);
    if (group == groups.end()) {
      return Bad(rank, node,
                 absl::StrCat("is of group `", node.group,
                              "`, which the file of groups does not have. Name one "
                              "that has it, `--comm-groups FILE`."));
    }
    const auto& members = group->second;
    if (std::find(members.begin(), members.end(), rank) == members.end()) {
      return Bad(rank, node,
                 absl::StrCat("is of group `", node.group, "`, of which the rank is no member"));
    }
  }
  return absl::OkStatus();
}

std::vector<const Node*> CollectivesOf(const ChakraTrace& trace, int64_t group) {
  std::vector<const Node*> nodes;
  for (const Node& node : trace.nodes) {
    if (node.kind == Kind::kCollective && node.group == group) nodes.push_back(&node);
  }
  return nodes;
}

absl::Status CheckGroup(int64_t group, const std::vector<int64_t>& members,
                        const std::vector<const ChakraTrace*>& traces) {
  const auto first = CollectivesOf(*traces[members[0]], group);
  for (const int64_t rank : members) {
    if (traces[rank] == traces[members[0]]) continue;
    const auto mine = CollectivesOf(*traces[rank], group);
    for (size_t i = 0; i < std::min(first.size(), mine.size()); ++i) {
      if (mine[i]->collective != first[i]->collective || mine[i]->bytes != first[i]->bytes ||
          mine[i]->dims != first[i]->dims) {
        return Bad(rank, *mine[i],
                   absl::StrCat("is collective ", i, " of its group, of ", mine[i]->bytes,
                                " bytes; that of rank ", members[0], " is node ", first[i]->id,
                                ", of ", first[i]->bytes,
                                " bytes. Members must issue the same in the same order."));
      }
    }
    if (mine.size() != first.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " issues ", mine.size(), " collectives of group `", group,
                       "`, rank ", members[0], " issues ", first.size(),
                       ". Members must issue the same in the same order."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyTraces(const std::vector<const ChakraTrace*>& traces, const CommGroups& groups) {
  const auto ranks = static_cast<int64_t>(traces.size());
  if (ranks == 0) return absl::InvalidArgumentError("there are no traces");
  for (int64_t r = 0; r < ranks; ++r) RETURN_IF_ERROR(CheckNodes(r, *traces[r], ranks, groups));
  std::vector<int64_t> all(ranks);
  for (int64_t r = 0; r < ranks; ++r) all[r] = r;
  RETURN_IF_ERROR(CheckGroup(0, all, traces));
  for (const auto& [group, members] : groups) {
    for (const int64_t rank : members) {
      if (rank < 0 || rank >= ranks) {
        return absl::InvalidArgumentError(
            absl::StrCat("group `", group, "` has rank ", rank, "; there are traces of ", ranks));
      }
    }
    if (members.empty()) continue;
    RETURN_IF_ERROR(CheckGroup(group, members, traces));
  }
  // Sends less receives by (from, to, tag, bytes).
  absl::flat_hash_map<std::tuple<int64_t, int64_t, int64_t, int64_t>,
                      std::pair<int64_t, std::pair<int64_t, const Node*>>>
      open;
  for (int64_t r = 0; r < ranks; ++r) {
    for (const Node& node : traces[r]->nodes) {
      if (node.kind != Kind::kSend && node.kind != Kind::kRecv) continue;
      const bool send = node.kind == Kind::kSend;
      auto& entry = open[{send ? r : node.src, send ? node.dst : r, node.tag, node.bytes}];
      entry.first += send ? 1 : -1;
      entry.second = {r, &node};
    }
  }
  std::pair<int64_t, const Node*> worst{-1, nullptr};
  int64_t balance = 0;
  for (const auto& [key, entry] : open) {
    if (entry.first == 0) continue;
    // The same one, whatever the order of the table.
    const auto place = std::make_pair(entry.second.first, entry.second.second->id);
    if (worst.second == nullptr || place < std::make_pair(worst.first, worst.second->id)) {
      worst = entry.second;
      balance = entry.first;
    }
  }
  if (worst.second == nullptr) return absl::OkStatus();
  return Bad(worst.first, *worst.second,
             absl::StrCat("of ", worst.second->bytes, " bytes and tag ", worst.second->tag, ": ",
                          balance > 0 ? "sends" : "receives", " exceed ",
                          balance > 0 ? "receives" : "sends", " by ", std::abs(balance),
                          ". Size and tag must be the same on both sides."));
}

}  // namespace plancast
