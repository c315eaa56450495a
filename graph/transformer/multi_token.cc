#include "graph/transformer/multi_token.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/transformer/embedding_and_head.h"
#include "graph/transformer/layer.h"

namespace plancast {

Body DrawMultiToken(const Drawing& drawing, LayerKind kind, int64_t depth) {
  BodyWriter body(absl::StrCat("mtp_", depth), drawing.dims);
  const std::vector<int> streams = drawing.Streams(body, depth - 1);
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
