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
                                  int64_t count) {
  const auto join_begin = static_cast<int32_t>(program_.joins.size());
  if (joins_) {
    const Block& pair = BlockAt(block);
    const int ins = pair.forward_in_ports;
    const auto join = [&](const PairHalf& half, Phase way, int to, int most) {
      for (Join join : half.joins) {
        if (join.to_port >= 0) join.to_port = static_cast<int16_t>(join.to_port + to);
        program_.joins.push_back(join);
      }
      if (half.feeder < 0) return;
      const int both = std::min(most, OutPorts(half.feeder, way).count);
      JoinPorts(half.feeder, half.ports == kAllPorts ? both : half.ports, way, to);
    };
    join(forward, Phase::kForward, 0, ins);
    join(backward, Phase::kBackward, ins, pair.num_in_ports - ins);
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
  program_.instances[instance].rendezvous = RendezvousOf(slot, instance);
  if (meetings_ != nullptr) meetings_->push_back({instance, slot});
}

int32_t ProgramWriter::RendezvousOf(int64_t slot, int32_t instance) {
  return assembly_ == nullptr ? static_cast<int32_t>(slot)
                              : assembly_->Join(slot, index_, instance);
}

void ProgramWriter::Repeat(int32_t begin, absl::Span<const Meeting> meetings, int32_t later,
                           int32_t times) {
  std::vector<Instance>& instances = program_.instances;
  const auto length = static_cast<int32_t>(instances.size()) - begin;
  if (length == 0) return;
  const int32_t first_join = instances[begin].join_begin;
  const auto joins = static_cast<int32_t>(program_.joins.size()) - first_join;
  instances.reserve(instances.size() + static_cast<size_t>(times) * length);
  program_.joins.reserve(program_.joins.size() + static_cast<size_t>(times) * joins);
  for (int32_t t = 1; t <= times; ++t) {
    const Meeting* meeting = meetings.data();
    for (int32_t i = begin; i < begin + length; ++i) {
      Instance again = instances[i];
      again.micro_batch += t * later;
      again.join_begin += t * joins;
      again.join_end += t * joins;
      if (again.rendezvous >= 0) {
        again.rendezvous = RendezvousOf(meeting->slot + t * later, i + t * length);
        ++meeting;
      }
      instances.push_back(again);
    }
    for (int32_t j = first_join; j < first_join + joins; ++j) {
      Join again = program_.joins[j];
      again.from += t * length;
      program_.joins.push_back(again);
    }
  }
  last_compute_ += times * length;
  for (int32_t& instance : held_by_) instance += times * length;
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
