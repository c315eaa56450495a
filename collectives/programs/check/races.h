#ifndef PLANCAST_COLLECTIVES_PROGRAMS_CHECK_RACES_H_
#define PLANCAST_COLLECTIVES_PROGRAMS_CHECK_RACES_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace plancast {

// Which steps come before which whatever the timing, by vector clocks: the steps of
// every thread block that are over for certain when a step starts. Blocks and cells
// count through all ranks, steps from 0.
class Races {
 public:
  Races(int32_t blocks, int32_t connections, int64_t cells);

  // A block begins its step; those before are over.
  void Begin(int32_t block, int32_t step) { clocks_[block][block] = step; }
  void Send(int32_t block, int32_t connection);
  void Receive(int32_t block, int32_t connection);
  // A step that others wait for is over, and they go on.
  void Publish(int32_t block, int32_t step);
  void WaitFor(int32_t block, int32_t other, int32_t step);

  struct Step {
    int32_t block = 0, step = 0;
  };
  // A step of `block` touches a cell: the step of another block that nothing orders
  // before it and that does too, where one of both writes.
  std::optional<Step> Read(int32_t block, int32_t step, int64_t cell);
  std::optional<Step> Write(int32_t block, int32_t step, int64_t cell);

 private:
  using Clock = std::vector<int32_t>;  // per block: steps that are over
  struct Touched {
    Step writer = {-1, 0};
    std::vector<Step> readers;  // since, the last of each block
  };
  static void Join(Clock& clock, const Clock& other);
  bool Before(const Step& step, int32_t block) const {
    return step.block == block || clocks_[block][step.block] > step.step;
  }

  std::vector<Clock> clocks_;
  std::vector<std::deque<Clock>> in_flight_;
  absl::flat_hash_map<int64_t, Clock> published_;
  std::vector<Touched> touched_;
};

}  // namespace plancast

#endif  // PLANCAST_COLLECTIVES_PROGRAMS_CHECK_RACES_H_
