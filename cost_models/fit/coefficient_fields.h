#ifndef PLANCAST_COST_MODELS_FIT_COEFFICIENT_FIELDS_H_
#define PLANCAST_COST_MODELS_FIT_COEFFICIENT_FIELDS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cost_models/coefficients/coefficients.h"
#include "cost_models/fit/levenberg_marquardt.h"

namespace plancast {

// Coefficients by the names of proto/kernel_cost.proto.
using NamedCoefficients = std::map<std::string, double>;

// One coefficient of a model: where it is kept, and where a fit looks for it.
template <typename Coefficients>
struct CoefficientField {
  absl::string_view name;
  double Coefficients::*member;
  double start;  // also the value where neither the fit nor the caller gives one
  Bounds bounds;
};

absl::Span<const CoefficientField<GemmCoefficients>> GemmFields();
absl::Span<const CoefficientField<AttentionCoefficients>> AttentionFields();
absl::Span<const CoefficientField<MemoryCoefficients>> MemoryFields();

// Tiles and splits that libraries choose from; those of every fit.
std::vector<GemmCoefficients::Tile> LibraryTiles();
std::vector<int> LibrarySplits();

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_FIT_COEFFICIENT_FIELDS_H_
