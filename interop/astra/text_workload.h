#ifndef PLANCAST_INTEROP_ASTRA_TEXT_WORKLOAD_H_
#define PLANCAST_INTEROP_ASTRA_TEXT_WORKLOAD_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "interop/astra/simulator/astra_workload.h"

namespace plancast {

// What every rank runs of ASTRA-sim 1.0's text workload with parallelism `MODEL`:
// a first line with it, a second with the number of layers, and for each layer
// `name dep forward_us type bytes input_gradient_us type bytes weight_gradient_us
// type bytes update`. Forward: compute, then its collective, layer after layer;
// backward from the last layer: input gradient, its collective (not of the first
// layer), beside it the weight gradient. `what` stands for the text in errors.
absl::StatusOr<AstraProgram> ReadTextWorkload(absl::string_view text, absl::string_view what);

// Six layers of ASTRA-sim's example MLP_ModelParallel.
absl::string_view MlpModelParallelText();

}  // namespace plancast

#endif  // PLANCAST_INTEROP_ASTRA_TEXT_WORKLOAD_H_
