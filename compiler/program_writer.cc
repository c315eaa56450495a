#include "compiler/program_writer.h"

#include <utility>

namespace plancast {

int32_t ProgramWriter::Append(int32_t block, Phase phase, int32_t micro_batch, int32_t chunk,
                              const std::vector<Join>& joins, int32_t layer_begin,
                              int32_t layer_count) {
  Instance instance;
  instance.block = block;
  instance.phase = phase;
  instance.micro_batch = micro_batch;
  instance.chunk = chunk;
  instance.layer_begin = layer_begin;
  instance.layer_count = layer_count;
  instance.join_begin = static_cast<int32_t>(program_.joins.size());
  program_.joins.insert(program_.joins.end(), joins.begin(), joins.end());
  instance.join_end = static_cast<int32_t>(program_.joins.size());
  program_.instances.push_back(instance);
  return static_cast<int32_t>(program_.instances.size()) - 1;
}

int32_t ProgramWriter::AppendCompute(int32_t block, Phase phase, const ScheduleStep& step,
                                     int64_t layer_begin, int64_t count, int32_t feeder,
                                     std::vector<Join> joins) {
  if (feeder >= 0) JoinPorts(feeder, assembly_.graph().blocks[block].num_in_ports, &joins);
  for (int32_t instance : held_by_) joins.push_back({instance, -1, -1});
  held_by_.clear();
  last_compute_ = Append(block, phase, step.micro_batch, step.chunk, joins,
                         static_cast<int32_t>(layer_begin), static_cast<int32_t>(count));
  return last_compute_;
}

void ProgramWriter::Meet(int32_t instance, const std::string& key) {
  program_.instances[instance].rendezvous = assembly_.Join(key, index_, instance);
}

void ProgramWriter::JoinPorts(int32_t from, int ports, std::vector<Join>* joins) {
  for (int port = 0; port < ports; ++port) {
    joins->push_back({from, static_cast<int16_t>(port), static_cast<int16_t>(port)});
  }
}

}  // namespace plancast
