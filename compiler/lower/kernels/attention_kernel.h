#ifndef PLANCAST_COMPILER_LOWER_KERNELS_ATTENTION_KERNEL_H_
#define PLANCAST_COMPILER_LOWER_KERNELS_ATTENTION_KERNEL_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/kernel_spec.h"
#include "graph/rule/op_rule.h"
#include "graph/split/op_split.h"

namespace plancast {

// The extent of a rule's factor by its name; `absent` where it has none.
int64_t ExtentOf(const OpRule& rule, const std::vector<int64_t>& extents, absl::string_view name,
                 int64_t absent = 1);

// Fused attention rules name their factors b, g (kv heads), r (query heads per
// kv head), s, t (query and key positions), d and e (head sizes; f, where a head has
// a rotated part beside d). `scores`: the first product; `diagonal`: keys are those of the queries.
// The kernel's type and pass are known.
void FillAttention(const OpRule& rule, const std::vector<int64_t>& extents,
                   const Contraction& scores, bool diagonal, KernelSpec* kernel);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_KERNELS_ATTENTION_KERNEL_H_
