#include "cost_models/attention_model.h"
#include "cost_models/coefficients/coefficient_tables.h"
#include "cost_models/convolution_model.h"
#include "cost_models/gemm_model.h"
#include "cost_models/kernel_cost.h"
#include "cost_models/memory_model.h"
#include "cost_models/model_chain.h"
#include "cost_models/roofline_model.h"

namespace plancast {

std::shared_ptr<const KernelCostModel> ModelChain(const CoefficientTables& tables) {
  return std::make_shared<FirstMatchModel>(std::vector<std::shared_ptr<const KernelCostModel>>{
      std::make_shared<GemmTileModel>(tables), std::make_shared<ConvolutionModel>(tables),
      std::make_shared<AttentionModel>(tables), std::make_shared<MemoryModel>(tables),
      std::make_shared<RooflineModel>(tables)});
}

std::shared_ptr<const KernelCostModel> DefaultKernelCostModel() {
  return ModelChain(CoefficientTables::Shipped());
}

}  // namespace plancast
