#include "interop/astra/text_workload.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace plancast {
namespace {

struct Work {
  int64_t us = 0;
  bool communicates = false;
  AstraCollective collective = AstraCollective::kAllReduce;
  int64_t bytes = 0;
};

struct Layer {
  Work forward, input_gradient, weight_gradient;
};

bool ReadWork(const std::vector<absl::string_view>& columns, size_t at, Work& work) {
  const absl::string_view type = columns[at + 1];
  work.communicates = type != "NONE";
  if (type == "ALLGATHER") work.collective = AstraCollective::kAllGather;
  if (type == "REDUCESCATTER") work.collective = AstraCollective::kReduceScatter;
  if (type == "ALLTOALL") work.collective = AstraCollective::kAllToAll;
  const bool known = type == "NONE" || type == "ALLREDUCE" || type == "ALLGATHER" ||
                     type == "REDUCESCATTER" || type == "ALLTOALL";
  return known && absl::SimpleAtoi(columns[at], &work.us) && work.us >= 0 &&
         absl::SimpleAtoi(columns[at + 2], &work.bytes) && work.bytes >= 0;
}

// Adds nodes in the order in which ASTRA-sim's converter numbers them.
class Builder {
 public:
  int32_t Kernel(int64_t us, const std::vector<int32_t>& after) {
    AstraNode node;
    node.kind = AstraNodeKind::kCompute;
    node.duration_us = us;
    return Add(node, after);
  }
  int32_t Collective(const Work& work, int32_t after) {
    AstraNode node;
    node.kind = AstraNodeKind::kCollective;
    node.collective = work.collective;
    node.bytes = work.bytes;
    return Add(node, {after});
  }
  AstraProgram program;

 private:
  int32_t Add(AstraNode node, const std::vector<int32_t>& after) {
    const auto index = static_cast<int32_t>(program.nodes.size());
    node.id = static_cast<uint64_t>(index);
    program.Add(node, after);
    return index;
  }
};

}  // namespace

absl::StatusOr<AstraProgram> ReadTextWorkload(absl::string_view text, absl::string_view what) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  const auto words = [&](size_t line) {
    return std::vector<absl::string_view>(
        absl::StrSplit(lines[line], absl::ByAnyChar(" \t\r"), absl::SkipEmpty()));
  };
  if (lines.size() < 3 || words(0)[0] != "MODEL") {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " must begin with `MODEL`, a line with the number of layers, and the layers"));
  }
  std::vector<Layer> layers;
  for (size_t l = 2; l < lines.size(); ++l) {
    const auto columns = words(l);
    Layer layer;
    if (columns.size() != 12 || !ReadWork(columns, 2, layer.forward) ||
        !ReadWork(columns, 5, layer.input_gradient) ||
        !ReadWork(columns, 8, layer.weight_gradient)) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": layer ", l - 2,
                       " must be `name dep us type bytes us type bytes us type bytes "
                       "update`, types one of NONE, ALLREDUCE, ALLGATHER, "
                       "REDUCESCATTER, ALLTOALL"));
    }
    if (layer.weight_gradient.communicates) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": layer ", l - 2, " sends its weight gradients, which parallelism ",
                       "`MODEL` keeps where they are; write `NONE 0` for them"));
    }
    layers.push_back(layer);
  }
  int64_t said = 0;
  if (!absl::SimpleAtoi(words(1)[0], &said) || said != static_cast<int64_t>(layers.size())) {
    return absl::InvalidArgumentError(absl::StrCat(what, " says `", words(1)[0],
                                                   "` layers and has ", layers.size(),
                                                   "; correct its second line"));
  }
  Builder builder;
  std::vector<int32_t> last;
  for (const Layer& layer : layers) {
    const int32_t kernel = builder.Kernel(layer.forward.us, last);
    last = {layer.forward.communicates ? builder.Collective(layer.forward, kernel) : kernel};
  }
  for (size_t l = layers.size(); l-- > 0;) {
    const int32_t input = builder.Kernel(layers[l].input_gradient.us, last);
    last.clear();
    int32_t reduced = -1;
    if (l > 0 && layers[l].input_gradient.communicates) {
      reduced = builder.Collective(layers[l].input_gradient, input);
    }
    last.push_back(builder.Kernel(layers[l].weight_gradient.us, {input}));
    if (reduced >= 0) last.push_back(reduced);
  }
  return builder.program;
}

// Sizes and times of astra-sim/examples/text_converter/text_workloads/
// MLP_ModelParallel.txt, which the MICRO 2024 tutorial converts.
absl::string_view MlpModelParallelText() {
  return R"(MODEL
6
mlp0 -1 32291 ALLGATHER 37632 32291 ALLREDUCE 37632 12864 NONE 0 3229
mlp1 -1 7488 ALLGATHER 65536 7488 ALLREDUCE 65536 3648 NONE 0 749
mlp2 -1 7488 ALLGATHER 65536 7488 ALLREDUCE 65536 3456 NONE 0 749
mlp3 -1 14144 ALLGATHER 147456 14144 ALLREDUCE 147456 10368 NONE 0 1414
mlp4 -1 7488 ALLGATHER 65536 7488 ALLREDUCE 65536 3648 NONE 0 749
mlp5 -1 9984 ALLGATHER 65536 9984 ALLREDUCE 65536 3456 NONE 0 998
)";
}

}  // namespace plancast
