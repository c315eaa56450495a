#ifndef PLANCAST_COMPILER_LOWER_QUANTIZED_H_
#define PLANCAST_COMPILER_LOWER_QUANTIZED_H_

#include <cstdint>
#include <vector>

#include "compiler/body/body_plan.h"
#include "compiler/lower/buffers.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "compiler/lower/lower_block.h"

namespace plancast {

// Software that quantises the operands of its products once (`quantized_activations`
// of a profile): what only products read is gathered and kept in their type.

// Bytes of a quantised activation over those of one as stored; 1 where nothing is
// quantised.
double QuantizedShare(const LowerContext& context);

// The same of what is gathered over tp in that type, kept so or not.
double GatheredShare(const LowerContext& context);

// Whether gathers of tensor parallelism may run in parts alongside the products that read them:
// not where these quantise what has been gathered in 16 bits.
bool GathersInParts(const LowerContext& context);

// Who reads each value of a body plan in `steps`: products in the 8- or 4-bit type,
// others, or both. What a collective passes on is read by who reads its result.
struct Readers {
  std::vector<bool> products, others;  // per value
};
// `ports`: who takes over what the body hands on is one of the others.
Readers ReadersOf(const LowerContext& context, const BodyPlan& plan,
                  const std::vector<PlanStep>& steps, bool ports = true);

// Bytes that each buffer takes until `steps` have read it, if it holds one of the values `kept`
// for them: a quantised copy for products, one as stored for others.
std::vector<int64_t> KeptBytes(const LowerContext& context, const BodyPlan& plan,
                               const Buffers& buffers, const std::vector<int>& kept,
                               const std::vector<PlanStep>& steps, bool ports = true);

// A buffer that takes other than its own `bytes` before or after a block: with how many owners it
// leaves that (one that keeps `kept_bytes` of it, those that it is passed on to, or both).
struct QuantizedLife {
  int64_t bytes = 0, entered_bytes = 0, kept_bytes = 0;
  int owners = 0;
  bool enters = false;
};
// Writes its memory events, used by tasks `first` to `last`.
void AddQuantized(const QuantizedLife& life, int first, int last, uint16_t tensor,
                  BlockBuilder* builder);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_QUANTIZED_H_
