#include "collectives/programs/check/races.h"

#include <algorithm>
#include <utility>

namespace plancast {

Races::Races(int32_t blocks, int32_t connections, int64_t cells)
    : clocks_(blocks, Clock(blocks)), in_flight_(connections), touched_(cells) {}

void Races::Join(Clock& clock, const Clock& other) {
  for (size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

// What is sent tells of all that the sender did before this step; the step itself
// reads before it sends, so it is over as well.
void Races::Send(int32_t block, int32_t connection) {
  Clock clock = clocks_[block];
  ++clock[block];
  in_flight_[connection].push_back(std::move(clock));
}

void Races::Receive(int32_t block, int32_t connection) {
  Join(clocks_[block], in_flight_[connection].front());
  in_flight_[connection].pop_front();
}

void Races::Publish(int32_t block, int32_t step) {
  clocks_[block][block] = step + 1;
  published_[int64_t{block} << 32 | step] = clocks_[block];
}

void Races::WaitFor(int32_t block, int32_t other, int32_t step) {
  Join(clocks_[block], published_[int64_t{other} << 32 | step]);
}

std::optional<Races::Step> Races::Read(int32_t block, int32_t step, int64_t cell) {
  Touched& touched = touched_[cell];
  if (touched.writer.block >= 0 && !Before(touched.writer, block)) return touched.writer;
  for (Step& reader : touched.readers) {
    if (reader.block != block) continue;
    reader.step = step;
    return std::nullopt;
  }
  touched.readers.push_back({block, step});
  return std::nullopt;
}

std::optional<Races::Step> Races::Write(int32_t block, int32_t step, int64_t cell) {
  Touched& touched = touched_[cell];
  if (touched.writer.block >= 0 && !Before(touched.writer, block)) return touched.writer;
  for (const Step& reader : touched.readers) {
    if (!Before(reader, block)) return reader;
  }
  touched.readers.clear();
  touched.writer = {block, step};
  return std::nullopt;
}

}  // namespace plancast
