#include "graph/model/packed_documents.h"

#include <algorithm>

namespace plancast {
namespace {

constexpr int64_t kMostPieces = 1 << 20;

// A run of one document: queries [begin, end) of a sequence.
struct Piece {
  int64_t begin = 0, end = 0;
};

// Hands out the sequences one by one.
class Packer {
 public:
  Packer(const std::vector<int64_t>& lengths, int64_t seq) : lengths_(lengths), seq_(seq) {}

  const std::vector<Piece>& Next() {
    pieces_.clear();
    for (int64_t at = 0; at < seq_;) {
      const int64_t size = std::min(lengths_[document_] - used_, seq_ - at);
      pieces_.push_back({at, at + size});
      at += size;
      used_ += size;
      if (used_ < lengths_[document_]) continue;
      used_ = 0;
      document_ = (document_ + 1) % lengths_.size();
    }
    return pieces_;
  }

 private:
  const std::vector<int64_t>& lengths_;
  const int64_t seq_;
  size_t document_ = 0;
  int64_t used_ = 0;  // of that document
  std::vector<Piece> pieces_;
};

// Keys that the first `n` queries of a document read together.
double KeysOfFirst(int64_t n, int64_t window) {
  const double all = static_cast<double>(n);
  if (window == 0 || n <= window) return all * (all + 1) / 2;
  const double whole = static_cast<double>(window);
  return whole * (whole + 1) / 2 + (all - whole) * whole;
}

// Those that queries [begin, end) of the sequence read.
double KeysBetween(const std::vector<Piece>& pieces, int64_t begin, int64_t end, int64_t window) {
  double keys = 0;
  for (const Piece& piece : pieces) {
    const int64_t from = std::max(begin, piece.begin), to = std::min(end, piece.end);
    if (from >= to) continue;
    keys += KeysOfFirst(to - piece.begin, window) - KeysOfFirst(from - piece.begin, window);
  }
  return keys;
}

// Those of the rank that has most of a sequence.
double KeysOfSequence(const std::vector<Piece>& pieces, int64_t seq, int64_t window,
                      const DocumentDeal& deal) {
  const double n = static_cast<double>(deal.ranks);
  if (deal.cut == DocumentCut::kEvenly || deal.ranks == 1) {
    return KeysBetween(pieces, 0, seq, window) / n;
  }
  const int64_t parts = deal.cut == DocumentCut::kZigzag ? 2 * deal.ranks : deal.ranks;
  const auto part = [&](int64_t i) {
    return KeysBetween(pieces, seq * i / parts, seq * (i + 1) / parts, window);
  };
  double most = 0;
  for (int64_t rank = 0; rank < deal.ranks; ++rank) {
    const double keys = part(rank) + (parts > deal.ranks ? part(parts - 1 - rank) : 0);
    most = std::max(most, keys);
  }
  return most;
}

}  // namespace

double KeysOfBusiest(const std::vector<int64_t>& lengths, int64_t seq, int64_t window,
                     const DocumentDeal& deal) {
  Packer packer(lengths, seq);
  std::vector<double> keys(static_cast<size_t>(std::min(deal.replicas, kMostPieces)), 0);
  int64_t looked_at = 0, steps = 0;
  for (; steps < deal.steps && (steps == 0 || looked_at < kMostPieces); ++steps) {
    for (double& of_replica : keys) {
      if (looked_at >= kMostPieces && &of_replica != keys.data() && steps == 0) break;
      for (int64_t sample = 0; sample < deal.samples; ++sample) {
        const std::vector<Piece>& pieces = packer.Next();
        looked_at += static_cast<int64_t>(pieces.size());
        of_replica += KeysOfSequence(pieces, seq, window, deal);
      }
    }
  }
  const double queries = static_cast<double>(steps) * static_cast<double>(deal.samples) *
                         static_cast<double>(seq) / static_cast<double>(deal.ranks);
  return *std::max_element(keys.begin(), keys.end()) / queries;
}

}  // namespace plancast
