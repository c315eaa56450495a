#ifndef PLANCAST_EXECUTOR_CHUNKS_CHUNK_FOLD_H_
#define PLANCAST_EXECUTOR_CHUNKS_CHUNK_FOLD_H_

#include <cstdint>
#include <vector>

#include "executor/chunks/chunk_graph.h"

namespace plancast {

// A graph with one thread block for every class of blocks that cannot differ.
struct FoldedChunks {
  ChunkGraph graph;
  std::vector<int32_t> class_of;  // per block of the whole graph
};

// Classes are the coarsest partition of blocks and resources in which blocks of a
// class do the same, are sent to and send to blocks of one class, wait for blocks of
// one class each and cross resources of one class each, and resources of a class
// carry equally many connections of each class. So members start, share and finish
// together, and a class is simulated as one block whose connection loads a resource
// as often as members cross it. Colours are 64-bit hashes.
FoldedChunks FoldChunks(const ChunkGraph& graph);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CHUNKS_CHUNK_FOLD_H_
