#ifndef PLANCAST_GRAPH_MODEL_PACKED_DOCUMENTS_H_
#define PLANCAST_GRAPH_MODEL_PACKED_DOCUMENTS_H_

#include <cstdint>
#include <vector>

namespace plancast {

// Documents that sequences of `seq` tokens are packed from: one after another, in their order and
// from the first again when all are used; one that reaches over the end of a sequence goes on in
// the next, as a document of its own. A causal mask by document lets a query read keys of its own
// document alone.
inline constexpr int64_t kMostDocumentTokens = 100'000'000;
inline constexpr int64_t kMostDocuments = 100'000;

// How a sequence is cut over the ranks that share it, as far as their work depends on it.
enum class DocumentCut : uint8_t {
  kEvenly,  // each document over all ranks (a piece of both its halves), or heads over them
  kBlock,   // the sequence, a block each
  kZigzag,  // the sequence, a piece of both its halves each
};

// Who gets which sequences: in each of `steps` micro-batches one run of `samples` sequences for
// each of `replicas`, in order; each sequence is shared by `ranks`. All of them positive.
struct DocumentDeal {
  int64_t replicas = 1, samples = 1, steps = 1, ranks = 1;
  DocumentCut cut = DocumentCut::kEvenly;
};

// Keys that a query reads, itself included, on average over the queries of the busiest rank:
// replicas meet at the end of all steps, the ranks that share a sequence at the end of each one.
// `window`: it reads the last so many at most; 0: all of its document. One document as long as the
// sequence makes (seq + 1) / 2. `lengths` are positive; at most 1,048,576 pieces of documents are
// looked at, for the rest the mean of these holds.
double KeysOfBusiest(const std::vector<int64_t>& lengths, int64_t seq, int64_t window,
                     const DocumentDeal& deal);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_MODEL_PACKED_DOCUMENTS_H_
