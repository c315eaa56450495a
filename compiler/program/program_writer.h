#ifndef PLANCAST_COMPILER_PROGRAM_PROGRAM_WRITER_H_
#define PLANCAST_COMPILER_PROGRAM_PROGRAM_WRITER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compiler/program/block_catalogue.h"
#include "compiler/program/graph_assembly.h"
#include "compiler/schedule/pipeline_schedule.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// Appends instances to the program of one stage, which is empty at first. A program
// is part of the graph of `assembly`, or a draft by itself (`assembly` is nullptr),
// whose blocks are numbers of the catalogue and whose rendezvous are slots. Without
// `joins` instances neither wait nor meet: the order of issue alone.
class ProgramWriter {
 public:
  ProgramWriter(BlockCatalogue* catalogue, GraphAssembly* assembly, Program* program,
                bool joins = true)
      : catalogue_(*catalogue),
        assembly_(assembly),
        joins_(joins),
        index_(assembly == nullptr ? 0 : assembly->programs()),
        program_(*program) {}

  Program& program() { return program_; }
  BlockCatalogue& catalogue() { return catalogue_; }

  // The block for number `number` of the catalogue; its tasks and ports.
  int32_t BlockOf(int32_t number) {
    return assembly_ == nullptr ? number : assembly_->Block(number, catalogue_[number]);
  }
  // The block under `key`, made by `make()` if it is new.
  template <typename Make>
  int32_t BlockOf(const BlockKey& key, Make&& make) {
    return BlockOf(catalogue_.Number(key, std::forward<Make>(make)));
  }
  const Block& BlockAt(int32_t block) const {
    return assembly_ == nullptr ? catalogue_[block].block : assembly_->graph().blocks[block];
  }

  // Adds an instance that waits for `joins`; returns its index.
  int32_t Append(int32_t block, Phase phase, int32_t micro_batch, int32_t chunk,
                 absl::Span<const Join> joins = {}, int32_t layer_begin = 0,
                 int32_t layer_count = 1);
  // One compute instance behind `feeder` (-1: none) and everything that
  // `HoldCompute` named since the last one. The feeder brings the first `ports` ports;
  // kAllPorts: as many as both have.
  static constexpr int kAllPorts = -1;
  int32_t AppendCompute(int32_t block, Phase phase, const ScheduleStep& step, int64_t layer_begin,
                        int64_t count, int32_t feeder, absl::Span<const Join> joins = {},
                        int ports = kAllPorts);
  // A pair of so many layers forward and back (PairBlocks), which waits for what `HoldCompute`
  // named too. Each of the two is as for `AppendCompute`.
  struct PairHalf {
    const ScheduleStep* step = nullptr;
    int64_t layer_begin = 0;
    int32_t feeder = -1;
    absl::Span<const Join> joins;  // to ports of its own block
    int ports = kAllPorts;
  };
  int32_t AppendPair(int32_t block, const PairHalf& forward, const PairHalf& backward,
                     int64_t count);
  // The next compute instance waits for all of `instance`.
  void HoldCompute(int32_t instance) { held_by_.push_back(instance); }
  // One communication whose in-ports 0 to `ports` - 1 wait for those of `feeder`, of a pair those
  // of its pass `way`.
  int32_t AppendTransfer(int32_t block, int32_t micro_batch, int32_t chunk, int32_t feeder,
                         int ports, Phase way = Phase::kForward);
  // The communication of `instance` joins the rendezvous of `slot`.
  void Meet(int32_t instance, int64_t slot);
  struct Meeting {
    int32_t instance;
    int64_t slot;
  };
  // From now on, all of these are appended to `meetings`; null: no more.
  void RecordMeetings(std::vector<Meeting>* meetings) { meetings_ = meetings; }
  // What was appended from instance `begin` on comes again, so many times, so many micro-batches
  // and slots later each time. `meetings`: its own.
  void Repeat(int32_t begin, absl::Span<const Meeting> meetings, int32_t later, int32_t times);

  int32_t last_compute() const { return last_compute_; }
  const std::vector<int32_t>& held_by() const { return held_by_; }

 private:
  int32_t Add(int32_t block, Phase phase, int32_t micro_batch, int32_t chunk, int32_t layer_begin,
              int32_t layer_count, int32_t join_begin);
  int32_t RendezvousOf(int64_t slot, int32_t instance);
  // The out-ports of an instance, of a pair those of its pass `way`.
  struct Ports {
    int first = 0, count = 0;
  };
  Ports OutPorts(int32_t instance, Phase way) const;
  // Joins the first `ports` out-ports of pass `way` of `from` to in-ports from `to` on.
  void JoinPorts(int32_t from, int ports, Phase way, int to = 0);
  void JoinHeld();

  BlockCatalogue& catalogue_;
  GraphAssembly* const assembly_;
  const bool joins_;
  const int32_t index_;
  Program& program_;
  int32_t last_compute_ = -1;
  std::vector<int32_t> held_by_;
  std::vector<Meeting>* meetings_ = nullptr;
};

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_PROGRAM_WRITER_H_
