#include "graph/transformer/multi_token.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/transformer/embedding_and_head.h"
#include "graph/transformer/layer.h"

namespace plancast {

Body DrawMultiToken(const Drawing& drawing, LayerKind kind, int64_t depth) {
  BodyWriter body(absl::StrCat("mtp_", depth), drawing.dims);
  std::vector<int> streams = {body.InPort("x", {"batch", "seq", "hidden"})};
  for (int64_t before = 1; before < depth; ++before) {
    streams.push_back(body.InPort(absl::StrCat("ahead_", before), {"batch", "seq", "hidden"}));
  }
  const int next = drawing.Norm(body, "enorm", DrawEmbeddingOps(drawing, body));
  const int so_far = drawing.Norm(body, "hnorm", streams.back());
  const int joined = body.Op1("eh_join", "concat_last2(rank=2)", {next, so_far},
                              {{"h", "two_hidden"}, {"i", "hidden"}, {"j", "hidden"}});
  int x = body.Op1("eh_proj", "linear", {joined}, {{"k", "two_hidden"}});
  x = drawing.Norm(body, "final_norm", DrawLayerOps(drawing, kind, body, x));
  for (const int stream : streams) body.OutPort(stream);
  body.OutPort(x);
  return body.Take();
}

}  // namespace plancast
