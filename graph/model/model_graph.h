#ifndef PLANCAST_GRAPH_MODEL_MODEL_GRAPH_H_
#define PLANCAST_GRAPH_MODEL_MODEL_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/dtype.h"
#include "graph/rule/op_rule.h"

namespace plancast {

// A named size that many tensors share: `batch` (micro-batch, set when a plan
// is bound, like `replicas`, the number of its data-parallel parts, and
// `replica_batch`, the size of one: local batch norm has statistics for each), `seq`, `hidden`,
// `kv_heads`, `heads_per_kv`, `head_dim`, `ffn`, `vocab`. Strategies split dims by these names.
struct ModelDim {
  std::string name;
  int64_t size = 0;  // 0 until bound

  bool is_bound_by_plan() const {
    return name == "batch" || name == "replicas" || name == "replica_batch";
  }
};

// How a frozen parameter is kept between uses: as it is used, or in 4-bit NormalFloat, from
// which it is rebuilt before each product that reads it (bitsandbytes, QLoRA).
enum class AtRest : uint8_t { kAsUsed, kNf4 };

struct TensorInfo {
  enum class Kind : uint8_t { kActivation, kParameter, kInput };
  std::string name;
  Kind kind = Kind::kActivation;
  DType dtype = DType::kCompute;
  std::vector<int> dims;  // indices into ModelGraph::dims
  bool frozen = false;    // a parameter that is not trained: no gradient, no state
  // A table whose gradient is that of the rows that were looked up (PyTorch's `sparse=True`): they
  // are exchanged and updated as soon as they are known, the rest is never touched.
  bool sparse = false;
  AtRest at_rest = AtRest::kAsUsed;
};

struct OpNode {
  std::string name;  // unique in the body, dotted: `attn.qkv`
  OpRulePtr rule;
  std::vector<int> inputs;  // tensor indices of the body, in the rule's argument order
  std::vector<int> outputs;
  std::vector<int> factor_dims;  // per factor of the rule: the model dim it runs over
  // Ops with the same non-empty label run as one kernel if the software
  // profile lists the label among its fusions.
  std::string fusion;
  // Ops with the same non-empty label are dropped and recomputed together by
  // recompute directives that name it (`core_attention`).
  std::string recompute_group;
};

// A module body: ops in execution order over its own tensors. The ports are
// tensors that enter from the previous segment and leave to the next.
struct Body {
  std::string name;
  std::vector<TensorInfo> tensors;
  std::vector<OpNode> ops;
  std::vector<int> in_ports, out_ports;
  // By port: no gradient comes back through it, of what is cut off inside of a module
  // (cut_segments.h) where the rest reads a tensor without passing a gradient on, and where nothing
  // before is trained (trained.h). Empty: of none.
  std::vector<bool> in_detached, out_detached;

  bool InDetached(size_t port) const { return port < in_detached.size() && in_detached[port]; }
  bool OutDetached(size_t port) const { return port < out_detached.size() && out_detached[port]; }
};

// Equal but for what is derived from them.
bool SameBody(const Body& a, const Body& b);

// A body `repeat` times in sequence; hash-consed: equal bodies share an
// index. `path` is the module's name in the tree: `embedding`, `layers`,
// `head`; ops are addressed as `layers.*.attn.qkv` or `head.logits`.
struct Segment {
  std::string path;
  int body = 0;
  int64_t repeat = 1;
  bool list = false;  // one of a list of equal modules, even if the list has one
  // What follows of the module that the segment before begins (cut_segments.h): not another one.
  bool continues = false;

  // Addressed as `layers.*`, dealt to pipeline stages one by one.
  bool in_list() const { return list || repeat > 1; }
};

// A parameter that two modules share (tied embeddings): one parameter, two homes. Of segments
// that repeat, the repeats that are meant. Several may chain: what is tied to one is tied to all.
struct TiedParameter {
  int first_segment = 0, first_tensor = 0;
  int second_segment = 0, second_tensor = 0;
  int64_t first_repeat = 0, second_repeat = 0;
};

// A model: a chain of segments. Invariants (Verify): indices in range, every
// op's tensors agree with its rule's dims, tensors are written before they are
// read, ports of neighbouring segments agree in number and dims.
struct ModelGraph {
  std::string name;
  std::vector<ModelDim> dims;
  std::vector<Body> bodies;
  std::vector<Segment> segments;
  std::vector<TiedParameter> tied;
  // Facts that FLOP formulas and reports need.
  int64_t layers = 0, hidden = 0, heads = 0, head_dim = 0, seq = 0, vocab = 0;
  // A token chooses its experts among those of `groups_per_token` groups of them.
  int64_t expert_groups = 1, groups_per_token = 1;
  // Lengths of the documents that sequences are packed from (packed_documents.h); empty: each
  // sequence is one.
  std::vector<int64_t> documents;

  absl::StatusOr<int> FindDim(absl::string_view name) const;
  // What pipeline layouts count: the modules in lists, or all modules
  // if there is no list.
  bool HasLists() const;
  int64_t LayerCount() const;
  // `layers.*` or `head`.
  static std::string PathOf(const Segment& segment);
  // Tied parameters once.
  int64_t ParameterCount() const;
  // Those that one token meets: of `experts` equal ones, `topk`. An op works on
  // experts if one of its factors runs over their `slots`.
  int64_t ActiveParameterCount() const;
  // Of ParameterCount, those that are trained.
  int64_t TrainedParameterCount() const;
  // Elements of one tensor; `batch` must be bound for activations.
  int64_t Elements(const TensorInfo& tensor) const;
  // A copy with these sizes: `batch` is `micro_batch`, `replicas` as it says, and
  // `replica_batch` a replica's share of the batch.
  ModelGraph WithBatch(int64_t micro_batch, int64_t replicas = 1) const;

  absl::Status Verify() const;
  // Stable text: one line an op, `layers.*.attn.qkv: qkv_linear(x, wq) -> (q, k, v)`.
  std::string DebugString() const;
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_MODEL_MODEL_GRAPH_H_
