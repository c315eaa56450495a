#include "collectives/synthesis/link_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

void Both(std::vector<GraphLink>& links, int32_t a, int32_t b, int32_t width = 1) {
  links.push_back({a, b, width});
  links.push_back({b, a, width});
}

// NVIDIA DGX-1 with Tesla V100 System Architecture (WP-08437-002), figure 4: the
// hybrid cube mesh. Two NVLinks along the cycle 0 1 3 2 6 7 5 4, one elsewhere.
std::vector<GraphLink> Dgx1() {
  constexpr int32_t kCycle[] = {0, 1, 3, 2, 6, 7, 5, 4};
  constexpr std::pair<int32_t, int32_t> kSingle[] = {{0, 2}, {0, 3}, {1, 2}, {1, 5},
                                                     {3, 7}, {4, 6}, {4, 7}, {5, 6}};
  std::vector<GraphLink> links;
  for (int i = 0; i < 8; ++i) Both(links, kCycle[i], kCycle[(i + 1) % 8], 2);
  for (const auto& [a, b] : kSingle) Both(links, a, b);
  return links;
}

// Neighbours in rows and columns; `wraps`: ends meet.
std::vector<GraphLink> Grid(int32_t rows, int32_t columns, bool wraps) {
  std::vector<GraphLink> links;
  for (int32_t r = 0; r < rows; ++r) {
    for (int32_t c = 0; c < columns; ++c) {
      const int32_t here = r * columns + c;
      if (c + 1 < columns) Both(links, here, here + 1);
      if (r + 1 < rows) Both(links, here, here + columns);
      // Rings of two are one link already.
      if (wraps && c == 0 && columns > 2) Both(links, here, here + columns - 1);
      if (wraps && r == 0 && rows > 2) Both(links, here, here + (rows - 1) * columns);
    }
  }
  return links;
}

absl::Status Unknown(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat("no topology `", name.substr(0, 80), "`; there are `dgx1`, `ring:8`, `full:4`, ",
                   "`hypercube:8`, `mesh:2x4` and `torus:4x4`, of up to ", LinkGraph::kMostNodes,
                   " nodes, and NCCL's topology files."));
}

}  // namespace

absl::StatusOr<LinkGraph> LinkGraph::Create(int32_t nodes, std::vector<GraphLink> links) {
  if (nodes < 2 || nodes > kMostNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the search takes 2 to ", kMostNodes, " nodes, and there are ", nodes, "."));
  }
  std::map<std::pair<int32_t, int32_t>, int64_t> widths;
  for (const GraphLink& link : links) {
    const auto inside = [&](int32_t node) { return node >= 0 && node < nodes; };
    if (!inside(link.from) || !inside(link.to) || link.from == link.to || link.width < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("a link of width ", link.width, " from node ", link.from, " to node ",
                       link.to, " of ", nodes, "; it joins two of them and is at least 1 wide."));
    }
    widths[{link.from, link.to}] += link.width;
  }
  std::vector<GraphLink> merged;
  for (const auto& [ends, width] : widths) {
    if (width > 1024) {
      return absl::InvalidArgumentError(
          absl::StrCat("a link ", width, " chunks wide; the search takes up to 1024."));
    }
    merged.push_back({ends.first, ends.second, static_cast<int32_t>(width)});
  }
  LinkGraph graph(nodes, std::move(merged));
  for (int32_t to = 0; to < nodes; ++to) {
    for (int32_t from = 0; from < nodes; ++from) {
      if (graph.Distance(from, to) < kUnreachable) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("no links lead from node ", from, " to node ", to, "."));
    }
  }
  return graph;
}

absl::StatusOr<LinkGraph> LinkGraph::Named(absl::string_view name) {
  if (name == "dgx1") return Create(8, Dgx1());
  const std::vector<absl::string_view> parts = absl::StrSplit(name, ':');
  if (parts.size() != 2) return Unknown(name);
  std::vector<int32_t> sizes;
  for (const absl::string_view text : absl::StrSplit(parts[1], 'x')) {
    if (!absl::SimpleAtoi(text, &sizes.emplace_back())) return Unknown(name);
    if (sizes.back() < 1 || sizes.back() > kMostNodes) return Unknown(name);
  }
  const int32_t n = sizes[0];
  std::vector<GraphLink> links;
  if (parts[0] == "ring" && sizes.size() == 1) {
    return Create(n, Grid(1, n, true));
  }
  if (parts[0] == "full" && sizes.size() == 1) {
    for (int32_t a = 0; a < n; ++a) {
      for (int32_t b = 0; b < a; ++b) Both(links, a, b);
    }
    return Create(n, std::move(links));
  }
  if (parts[0] == "hypercube" && sizes.size() == 1 && (n & (n - 1)) == 0) {
    for (int32_t a = 0; a < n; ++a) {
      for (int32_t bit = 1; bit < n; bit *= 2) {
        if ((a & bit) == 0) Both(links, a, a | bit);
      }
    }
    return Create(n, std::move(links));
  }
  if ((parts[0] == "mesh" || parts[0] == "torus") && sizes.size() == 2) {
    return Create(n * sizes[1], Grid(n, sizes[1], parts[0] == "torus"));
  }
  return Unknown(name);
}

LinkGraph::LinkGraph(int32_t nodes, std::vector<GraphLink> links)
    : nodes_(nodes),
      links_(std::move(links)),
      index_(nodes * nodes, -1),
      distance_(nodes * nodes, kUnreachable),
      into_(nodes),
      out_of_(nodes) {
  for (int32_t i = 0; i < static_cast<int32_t>(links_.size()); ++i) {
    const GraphLink& link = links_[i];
    index_[link.from * nodes_ + link.to] = i;
    distance_[link.from * nodes_ + link.to] = 1;
    into_[link.to].push_back(i);
    out_of_[link.from].push_back(i);
  }
  for (int32_t i = 0; i < nodes_; ++i) distance_[i * nodes_ + i] = 0;
  for (int32_t k = 0; k < nodes_; ++k) {
    for (int32_t i = 0; i < nodes_; ++i) {
      for (int32_t j = 0; j < nodes_; ++j) {
        int32_t& distance = distance_[i * nodes_ + j];
        distance = std::min(distance, Distance(i, k) + Distance(k, j));
      }
    }
  }
}

int32_t LinkGraph::WidthInto(int32_t node) const {
  int32_t width = 0;
  for (const int32_t link : into_[node]) width += links_[link].width;
  return width;
}

LinkGraph LinkGraph::Reversed() const {
  std::vector<GraphLink> links = links_;
  for (GraphLink& link : links) std::swap(link.from, link.to);
  std::sort(links.begin(), links.end(), [](const GraphLink& a, const GraphLink& b) {
    return std::make_pair(a.from, a.to) < std::make_pair(b.from, b.to);
  });
  return LinkGraph(nodes_, std::move(links));
}

}  // namespace plancast
