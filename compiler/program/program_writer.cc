#include "compiler/program/program_writer.h"

#include <algorithm>

namespace plancast {

int32_t ProgramWriter::Add(int32_t block, Phase phase, int32_t micro_batch, int32_t chunk,
                           int32_t layer_begin, int32_t layer_count, int32_t join_begin) {
  Instance& instance = program_.instances.emplace_back();
  instance.block = block;
  instance.phase = phase;
  instance.micro_batch = micro_batch;
  instance.chunk = chunk;
  instance.layer_begin = layer_begin;
  instance.layer_count = layer_count;
  instance.join_begin = join_begin;
  instance.join_end = static_cast<int32_t>(program_.joins.size());
  return static_cast<int32_t>(program_.instances.size()) - 1;
}

int32_t ProgramWriter::Append(int32_t block, Phase phase, int32_t micro_batch, int32_t chunk,
                              absl::Span<const Join> joins, int32_t layer_begin,
                              int32_t layer_count) {
  const auto join_begin = static_cast<int32_t>(program_.joins.size());
  if (joins_) program_.joins.insert(program_.joins.end(), joins.begin(), joins.end());
  return Add(block, phase, micro_batch, chunk, layer_begin, layer_count, join_begin);
}

int32_t ProgramWriter::AppendCompute(int32_t block, Phase phase, const ScheduleStep& step,
                                     int64_t layer_begin, int64_t count, int32_t feeder,
                                     absl::Span<const Join> joins, int ports) {
  const auto join_begin = static_cast<int32_t>(program_.joins.size());
  if (joins_) {
    program_.joins.insert(program_.joins.end(), joins.begin(), joins.end());
    if (feeder >= 0) {
      const int both = std::min(BlockAt(block).num_in_ports, OutPorts(feeder, phase).count);
      JoinPorts(feeder, ports == kAllPorts ? both : ports, phase);
    }
  }
  JoinHeld();
  const int32_t index =
      Add(block, phase, step.micro_batch, step.chunk, static_cast<int32_t>(layer_begin),
          static_cast<int32_t>(count), join_begin);
  // A module that has nothing to do ends nothing.
  if (BlockAt(block).size() > 0) last_compute_ = index;
  return index;
}

int32_t ProgramWriter::AppendPair(int32_t block, const PairHalf& forward, const PairHalf& backward,
                                  int64_t count, absl::Span<const Join> joins) {
  const auto join_begin = static_cast<int32_t>(program_.joins.size());
  if (joins_) {
    program_.joins.insert(program_.joins.end(), joins.begin(), joins.end());
    const Block& pair = BlockAt(block);
    const int ins = pair.forward_in_ports;
    const auto join = [&](int32_t feeder, Phase way, int to, int most) {
      if (feeder >= 0) JoinPorts(feeder, std::min(most, OutPorts(feeder, way).count), way, to);
    };
    join(forward.feeder, Phase::kForward, 0, ins);
    join(backward.feeder, Phase::kBackward, ins, pair.num_in_ports - ins);
  }
  JoinHeld();
  const ScheduleStep &f = *forward.step, &b = *backward.step;
  const int32_t index =
      Add(block, Phase::kBackward, b.micro_batch, b.chunk,
          static_cast<int32_t>(backward.layer_begin), static_cast<int32_t>(count), join_begin);
  program_.instances[index].forward = {f.micro_batch, f.chunk,
                                       static_cast<int32_t>(forward.layer_begin)};
  if (BlockAt(block).size() > 0) last_compute_ = index;
  return index;
}

void ProgramWriter::JoinHeld() {
  if (joins_) {
    for (int32_t instance : held_by_) program_.joins.push_back({instance, -1, -1});
  }
  held_by_.clear();
}

int32_t ProgramWriter::AppendTransfer(int32_t block, int32_t micro_batch, int32_t chunk,
                                      int32_t feeder, int ports, Phase way) {
  const auto join_begin = static_cast<int32_t>(program_.joins.size());
  if (joins_) JoinPorts(feeder, ports, way);
  return Add(block, Phase::kComm, micro_batch, chunk, 0, 1, join_begin);
}

void ProgramWriter::Meet(int32_t instance, int64_t slot) {
  if (!joins_) return;
  program_.instances[instance].rendezvous =
      assembly_ == nullptr ? static_cast<int32_t>(slot) : assembly_->Join(slot, index_, instance);
}

ProgramWriter::Ports ProgramWriter::OutPorts(int32_t instance, Phase way) const {
  const Block& block = BlockAt(program_.instances[instance].block);
  const auto all = static_cast<int>(block.out_ports.size());
  if (!program_.instances[instance].pairs()) return {0, all};
  const int forward = block.forward_out_ports;
  return way == Phase::kForward ? Ports{0, forward} : Ports{forward, all - forward};
}

void ProgramWriter::JoinPorts(int32_t from, int ports, Phase way, int to) {
  const int first = ports > 0 ? OutPorts(from, way).first : 0;
  for (int port = 0; port < ports; ++port) {
    program_.joins.push_back(
        {from, static_cast<int16_t>(first + port), static_cast<int16_t>(to + port)});
  }
}

}  // namespace plancast
