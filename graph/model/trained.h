#ifndef PLANCAST_GRAPH_MODEL_TRAINED_H_
#define PLANCAST_GRAPH_MODEL_TRAINED_H_

#include <string>
#include <vector>

#include "graph/model/model_graph.h"

namespace plancast {

// Where gradients go in models of which only a part is trained: a tensor has one if it
// depends, by differentiable inputs of ops, on a trained parameter or on an in-port that is not
// detached (Body::in_detached).

// Whether a parameter of the body is frozen, or an in-port detached.
bool TrainsInPart(const Body& body);

// Per tensor of the body: it has a gradient. Tensors that are no result of an op: trained
// parameters and in-ports that are not detached.
std::vector<bool> HasGradients(const Body& body);

// Detaches the ports of a model that nothing before trains: backward passes end there. Runs of
// modules are cut where that changes. Per segment as it was, its first piece. A model without
// frozen parameters stays as it is.
std::vector<int> DetachFrozen(ModelGraph* graph);

// Tied parameters follow their repeats to the pieces that segments were cut into.
void MoveTied(const std::vector<int>& first_pieces, ModelGraph* graph);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_MODEL_TRAINED_H_
