#include "tests/interop/msccl/interpreter.h"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <tuple>
#include <vector>

namespace plancast {
namespace {

using Values = std::vector<uint64_t>;

class Interpreter {
 public:
  Interpreter(const ChunkProgram& program, uint64_t seed) : p_(program), random_(seed) {
    const auto n = static_cast<size_t>(p_.num_ranks());
    const int32_t part = p_.chunks / p_.num_ranks();
    // The memory of a rank: everything the collective speaks of, then scratch.
    for (size_t r = 0; r < n; ++r) {
      Values memory(3 * kRoom);
      for (uint64_t& cell : memory) cell = random_();
      memory_.push_back(memory);
      const int32_t inputs = p_.kind == ProgramKind::kAllGather ? part : p_.chunks;
      Values input;
      for (int32_t k = 0; k < inputs; ++k) {
        input.push_back(memory_[r][Cell(r, ChunkBuffer::kInput, k)]);
      }
      inputs_.push_back(input);
      done_.emplace_back(p_.ranks[r].blocks.size(), 0);
    }
  }

  bool Run() {
    for (;;) {
      std::vector<std::pair<size_t, size_t>> ready;
      bool finished = true;
      for (size_t r = 0; r < memory_.size(); ++r) {
        for (size_t b = 0; b < p_.ranks[r].blocks.size(); ++b) {
          if (done_[r][b] == p_.ranks[r].blocks[b].steps.size()) continue;
          finished = false;
          if (Ready(r, b)) ready.emplace_back(r, b);
        }
      }
      if (finished) return Right();
      if (ready.empty()) return false;
      // A few of them, so that big programs need few rounds.
      std::shuffle(ready.begin(), ready.end(), random_);
      ready.resize(1 + random_() % ready.size());
      for (const auto& [r, b] : ready) {
        if (!Ready(r, b)) continue;
        if (!Step(r, b)) return false;
      }
    }
  }

 private:
  static constexpr size_t kRoom = 4096;

  size_t Cell(size_t r, ChunkBuffer buffer, int32_t chunk) const {
    const auto at = static_cast<size_t>(chunk);
    if (buffer == ChunkBuffer::kScratch) return 2 * kRoom + at;
    if (!p_.in_place) return (buffer == ChunkBuffer::kOutput ? kRoom : 0) + at;
    const auto part = static_cast<size_t>(p_.chunks / p_.num_ranks());
    // In place, an all_gather's input is the rank's part of its output.
    const bool shifted = p_.kind == ProgramKind::kAllGather && buffer == ChunkBuffer::kInput;
    return shifted ? r * part + at : at;
  }

  bool Ready(size_t r, size_t b) {
    const ThreadBlock& block = p_.ranks[r].blocks[b];
    const ChunkStep& step = block.steps[done_[r][b]];
    if (step.after.block >= 0 &&
        done_[r][step.after.block] <= static_cast<size_t>(step.after.step)) {
      return false;
    }
    if (!Receives(step.op)) return true;
    return !wires_[{block.recv_peer, r, block.channel}].empty();
  }

  bool Step(size_t r, size_t b) {
    const ThreadBlock& block = p_.ranks[r].blocks[b];
    const ChunkStep& step = block.steps[done_[r][b]++];
    if (step.op == ChunkOp::kNop) return true;
    const auto at = [&](const ChunkSpan& span, int32_t i) -> uint64_t& {
      return memory_[r][Cell(r, span.buffer, span.first + i)];
    };
    Values message;
    if (Receives(step.op)) {
      auto& wire = wires_[{block.recv_peer, r, block.channel}];
      message = wire.front();
      wire.pop_front();
      if (message.size() != static_cast<size_t>(step.source.count)) return false;
    }
    Values result;
    for (int32_t i = 0; i < step.source.count; ++i) {
      uint64_t value = Receives(step.op) ? message[i] : at(step.source, i);
      if (Receives(step.op) && Reduces(step.op)) value += at(step.source, i);
      if (step.op == ChunkOp::kReduce) value += at(step.target, i);
      result.push_back(value);
    }
    const bool stores = step.op != ChunkOp::kSend && step.op != ChunkOp::kRecvReduceSend;
    for (int32_t i = 0; stores && i < step.source.count; ++i) at(step.target, i) = result[i];
    if (Sends(step.op)) {
      wires_[{static_cast<int64_t>(r), static_cast<size_t>(block.send_peer), block.channel}]
          .push_back(result);
    }
    return true;
  }

  bool Right() const {
    const int32_t part = p_.chunks / p_.num_ranks();
    for (size_t r = 0; r < memory_.size(); ++r) {
      for (int32_t k = 0; k < p_.chunks; ++k) {
        uint64_t wanted = 0;
        switch (p_.kind) {
          case ProgramKind::kAllReduce:
            for (const Values& input : inputs_) wanted += input[k];
            break;
          case ProgramKind::kAllGather:
            wanted = inputs_[k / part][k % part];
            break;
          case ProgramKind::kAllToAll:
            wanted = inputs_[k / part][static_cast<int32_t>(r) * part + k % part];
            break;
          default:
            return false;
        }
        if (memory_[r][Cell(r, ChunkBuffer::kOutput, k)] != wanted) return false;
      }
    }
    return true;
  }

  const ChunkProgram& p_;
  std::mt19937_64 random_;
  std::vector<Values> memory_, inputs_;
  std::vector<std::vector<size_t>> done_;  // steps of [rank][block]
  std::map<std::tuple<int64_t, size_t, int32_t>, std::deque<Values>> wires_;
};

}  // namespace

bool ComputesItsCollective(const ChunkProgram& program, uint64_t seed, int runs) {
  for (int run = 0; run < runs; ++run) {
    if (!Interpreter(program, seed + static_cast<uint64_t>(run)).Run()) return false;
  }
  return true;
}

}  // namespace plancast
