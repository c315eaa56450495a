#ifndef PLANCAST_COLLECTIVES_SYNTHESIS_LINK_GRAPH_H_
#define PLANCAST_COLLECTIVES_SYNTHESIS_LINK_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

// A link from one node to another that passes `width` chunks in a round.
struct GraphLink {
  int32_t from = 0, to = 0;
  int32_t width = 1;
};

// What a synthesised algorithm runs on. Links are directed, at most one for each
// pair of nodes, sorted by (from, to).
class LinkGraph {
 public:
  // Refuses more than kMostNodes nodes, links to themselves and widths below 1;
  // adds up parallel links.
  static absl::StatusOr<LinkGraph> Create(int32_t nodes, std::vector<GraphLink> links);
  // `dgx1` (the eight GPUs of a DGX-1V), `ring:N`, `full:N`, `hypercube:N`, or
  // `mesh:RxC` and `torus:RxC`; links both ways, of width 1 but for dgx1's.
  static absl::StatusOr<LinkGraph> Named(absl::string_view name);

  int32_t nodes() const { return nodes_; }
  const std::vector<GraphLink>& links() const { return links_; }
  // Index of the link, or -1.
  int32_t Find(int32_t from, int32_t to) const { return index_[from * nodes_ + to]; }
  // Indices of the links into and out of a node.
  const std::vector<int32_t>& into(int32_t node) const { return into_[node]; }
  const std::vector<int32_t>& out_of(int32_t node) const { return out_of_[node]; }
  // Chunks that may enter the node in a round.
  int32_t WidthInto(int32_t node) const;
  // Links on a shortest way; kUnreachable.
  int32_t Distance(int32_t from, int32_t to) const { return distance_[from * nodes_ + to]; }
  // The same nodes, all links turned round.
  LinkGraph Reversed() const;

  static constexpr int32_t kMostNodes = 16;
  static constexpr int32_t kUnreachable = 1 << 20;

 private:
  LinkGraph(int32_t nodes, std::vector<GraphLink> links);

  int32_t nodes_ = 0;
  std::vector<GraphLink> links_;
  std::vector<int32_t> index_, distance_;
  std::vector<std::vector<int32_t>> into_, out_of_;
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_SYNTHESIS_LINK_GRAPH_H_
