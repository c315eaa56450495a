#ifndef PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_PIECES_H_
#define PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_PIECES_H_

#include "graph/model/model_graph.h"
#include "strategy/strategy_tree.h"
#include "tests/compiler/folded_against_reference.h"

namespace plancast {

// Nodes that run in pieces: layers and parts of them, single ops, the head; some inside of others,
// some that go back at once.
void DrawPieces(Dice& dice, const ModelGraph& graph, StrategyTree* tree);

// Several layers as one unit of sharding, of the plan or of a node.
void DrawUnits(Dice& dice, const ModelGraph& graph, StrategyTree* tree);

}  // namespace plancast

#endif  // PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_PIECES_H_
