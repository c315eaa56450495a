#include "compiler/sharding/norm_chain.h"

#include "compiler/program/pipeline_transfer.h"

namespace plancast {

int32_t UpdateInChain(const ProgramInputs& inputs, int64_t stage, int32_t block,
                      std::vector<Join> joins, int64_t slots, ProgramWriter* writer) {
  PipelineTransfer transfer;
  transfer.wire_bytes = 4;
  transfer.pp_axis = inputs.mesh->FindAxis("pp").value();
  transfer.peer_offset = 1;
  const auto exchange = [&](bool sends, const std::vector<Join>& behind) {
    const int32_t transfer_block = writer->BlockOf({BlockKey::kNorm, sends ? 1 : 0}, [&] {
      return sends ? SendBlock(transfer, StreamKind::kSendNext)
                   : ReceiveBlock(*inputs.mesh, transfer, StreamKind::kRecvPrev);
    });
    const int32_t instance = writer->Append(transfer_block, Phase::kComm, 0, 0, behind);
    writer->Meet(instance, slots + (sends ? stage : stage - 1));
    return instance;
  };
  const int32_t before = stage > 0 ? exchange(/*sends=*/false, {}) : -1;
  if (before >= 0) joins.push_back({before, -1, 0});
  const int32_t update = writer->Append(block, Phase::kOptimizer, 0, 0, joins);
  if (stage + 1 < inputs.options->pp) {
    std::vector<Join> found{{update, 0, -1}};
    if (before >= 0) found.push_back({before, -1, -1});
    exchange(/*sends=*/true, found);
  }
  return update;
}

}  // namespace plancast
