#include "executor/chunks/chunk_fold.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/check.h"
#include "base/mix_bits.h"

namespace plancast {
namespace {

uint64_t Mix(uint64_t a, uint64_t b) { return MixBits(a ^ MixBits(b)); }
uint64_t Mix(uint64_t a, int64_t b) { return Mix(a, static_cast<uint64_t>(b)); }

class Refinement {
 public:
  explicit Refinement(const ChunkGraph& graph)
      : graph_(graph), blocks_(graph.blocks.size()), resources_(graph.resources.size()) {}

  void Do() {
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const ChunkGraph::Block& block = graph_.blocks[b];
      uint64_t colour = Mix(static_cast<uint64_t>(block.script), int64_t{block.program});
      if (block.out >= 0) {
        const ChunkGraph::Connection& out = graph_.connections[block.out];
        colour = Mix(Mix(colour, out.latency_ps), out.bytes_per_s);
        for (int32_t u = out.use_begin; u < out.use_end; ++u) {
          colour = Mix(colour, graph_.uses[u].coefficient_q20);
        }
      }
      blocks_[b] = colour;
    }
    for (size_t r = 0; r < resources_.size(); ++r) {
      resources_[r] = Mix(0x5bd1e995, graph_.resources[r]);
    }
    size_t classes = 0;
    while (true) {
      Round();
      const size_t now = Count();
      if (now == classes) break;
      classes = now;
    }
  }

  const std::vector<uint64_t>& blocks() const { return blocks_; }
  const std::vector<uint64_t>& resources() const { return resources_; }

 private:
  void Round() {
    std::vector<uint64_t> carried(resources_.size());
    for (const ChunkGraph::Connection& connection : graph_.connections) {
      const uint64_t colour = blocks_[connection.sender];
      for (int32_t u = connection.use_begin; u < connection.use_end; ++u) {
        const ChunkGraph::Use& use = graph_.uses[u];
        // A sum does not depend on the order.
        carried[use.resource] += Mix(colour, int64_t{u - connection.use_begin});
      }
    }
    for (size_t r = 0; r < resources_.size(); ++r) {
      resources_[r] = Mix(resources_[r], carried[r]);
    }
    next_.resize(blocks_.size());
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const ChunkGraph::Block& block = graph_.blocks[b];
      uint64_t colour = blocks_[b];
      if (block.in >= 0) colour = Mix(colour, blocks_[graph_.connections[block.in].sender]);
      if (block.out >= 0) {
        const ChunkGraph::Connection& out = graph_.connections[block.out];
        colour = Mix(colour + 1, blocks_[out.receiver]);
        for (int32_t u = out.use_begin; u < out.use_end; ++u) {
          colour = Mix(colour, resources_[graph_.uses[u].resource]);
        }
      }
      const int32_t end = b + 1 < blocks_.size() ? graph_.blocks[b + 1].first_dependency
                                                 : static_cast<int32_t>(graph_.dependencies.size());
      for (int32_t d = block.first_dependency; d < end; ++d) {
        colour = Mix(colour, blocks_[graph_.dependencies[d]]);
      }
      next_[b] = colour;
    }
    std::swap(blocks_, next_);
  }

  size_t Count() { return Count(blocks_) + Count(resources_); }
  size_t Count(const std::vector<uint64_t>& colours) {
    size_t size = 16;
    while (size < 2 * colours.size()) size *= 2;
    table_.assign(size, 0);
    size_t count = 0;
    for (const uint64_t colour : colours) {
      size_t at = colour & (size - 1);
      while (table_[at] != 0 && table_[at] != (colour | 1)) at = (at + 1) & (size - 1);
      if (table_[at] != 0) continue;
      table_[at] = colour | 1;
      ++count;
    }
    return count;
  }

  const ChunkGraph& graph_;
  std::vector<uint64_t> blocks_, resources_, next_, table_;
};

// Numbers in the order of the first of each colour, and who that is.
std::vector<int32_t> Number(const std::vector<uint64_t>& colours, std::vector<int32_t>& first) {
  absl::flat_hash_map<uint64_t, int32_t> numbers;
  std::vector<int32_t> classes(colours.size());
  for (size_t i = 0; i < colours.size(); ++i) {
    const auto [found, added] = numbers.try_emplace(colours[i], static_cast<int32_t>(first.size()));
    if (added) first.push_back(static_cast<int32_t>(i));
    classes[i] = found->second;
  }
  return classes;
}

}  // namespace

FoldedChunks FoldChunks(const ChunkGraph& graph) {
  Refinement refinement(graph);
  refinement.Do();
  FoldedChunks folded;
  std::vector<int32_t> first_blocks, first_resources;
  folded.class_of = Number(refinement.blocks(), first_blocks);
  const std::vector<int32_t> resource_class = Number(refinement.resources(), first_resources);

  // How often connections of a class cross the first resource of a class.
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int64_t> crossings;
  for (const ChunkGraph::Connection& connection : graph.connections) {
    for (int32_t u = connection.use_begin; u < connection.use_end; ++u) {
      const int32_t resource = graph.uses[u].resource;
      const int32_t of = resource_class[resource];
      if (first_resources[of] != resource) continue;
      crossings[{folded.class_of[connection.sender], of}] += graph.uses[u].coefficient_q20;
    }
  }

  ChunkGraph& result = folded.graph;
  result.scripts = graph.scripts;
  result.programs = graph.programs;
  for (const int32_t resource : first_resources) {
    result.resources.push_back(graph.resources[resource]);
  }
  std::vector<int32_t> connection_of(first_blocks.size(), -1);  // by the sender's class
  for (const int32_t b : first_blocks) {
    const ChunkGraph::Block& from = graph.blocks[b];
    ChunkGraph::Block block = from;
    block.first_dependency = static_cast<int32_t>(result.dependencies.size());
    const size_t next = static_cast<size_t>(b) + 1;
    const int32_t end = next < graph.blocks.size()
                            ? graph.blocks[next].first_dependency
                            : static_cast<int32_t>(graph.dependencies.size());
    for (int32_t d = from.first_dependency; d < end; ++d) {
      result.dependencies.push_back(folded.class_of[graph.dependencies[d]]);
    }
    block.in = -1;
    if (from.out >= 0) {
      const ChunkGraph::Connection& out = graph.connections[from.out];
      ChunkGraph::Connection connection = out;
      connection.sender = static_cast<int32_t>(result.blocks.size());
      connection.receiver = folded.class_of[out.receiver];
      connection.use_begin = static_cast<int32_t>(result.uses.size());
      std::vector<int32_t> seen;
      for (int32_t u = out.use_begin; u < out.use_end; ++u) {
        const int32_t of = resource_class[graph.uses[u].resource];
        if (std::find(seen.begin(), seen.end(), of) != seen.end()) continue;
        seen.push_back(of);
        result.uses.push_back({of, crossings[{connection.sender, of}]});
      }
      connection.use_end = static_cast<int32_t>(result.uses.size());
      block.out = static_cast<int32_t>(result.connections.size());
      result.connections.push_back(connection);
    }
    result.blocks.push_back(block);
  }
  for (size_t c = 0; c < result.connections.size(); ++c) {
    ChunkGraph::Block& receiver = result.blocks[result.connections[c].receiver];
    PLANCAST_CHECK(receiver.in < 0) << "two classes send to one";
    receiver.in = static_cast<int32_t>(c);
  }
  return folded;
}

}  // namespace plancast
