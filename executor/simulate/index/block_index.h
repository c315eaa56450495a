#ifndef PLANCAST_EXECUTOR_SIMULATE_INDEX_BLOCK_INDEX_H_
#define PLANCAST_EXECUTOR_SIMULATE_INDEX_BLOCK_INDEX_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "graph/execution/execution_graph.h"

namespace plancast {

// What running a block needs to know, once for all its layers.
struct BlockIndex {
  int32_t size = 0;
  StreamMask streams = 0, kernel_streams = 0;
  StreamMask after_compute = 0;     // streams whose first task waits for one of the compute stream
  bool syncs = false;               // the host waits for a task of it
  bool kernels_need_ports = false;  // the first task of the compute stream waits for all in-ports
  bool captured = false;            // launched by a CUDA graph: no launches of its own
  int32_t num_in_ports = 0;
  absl::Span<const int32_t> out_ports;  // Block::out_ports
  const StreamKind* stream = nullptr;   // Block::stream
  int32_t order_begin[kNumStreams + 1] = {};
  std::vector<int32_t> order;     // tasks stream by stream, in issue order
  std::vector<int32_t> rank;      // of a task in its stream
  std::vector<int32_t> position;  // of a task in `order`
  // What a task waits for within its layer beyond what its stream has waited for:
  // at most one task of each other stream, ascending by stream. CSR.
  std::vector<int32_t> dep_begin, deps;
  std::vector<uint8_t> awaited;            // whether a task of another stream waits for a task
  std::vector<int32_t> port_begin, ports;  // likewise, in-ports
  std::vector<int32_t> launches;           // before each task and, at last, of all
  std::vector<int32_t> first_launch;       // with how many a task can start: its calls and one more
  std::vector<int32_t> sync_before;        // the last task before that the host waits for; -1

  // With the first of its launches a task can start: how many that is, in the layer.
  int32_t FirstLaunch(int32_t task) const { return first_launch[task]; }
  int32_t Count(int stream) const { return order_begin[stream + 1] - order_begin[stream]; }
  // Last task of a stream that is not empty.
  int32_t Last(int stream) const { return order[order_begin[stream + 1] - 1]; }
};

struct ProgramIndex {
  const Instance* instances = nullptr;
  const Join* joins = nullptr;
  int64_t tasks = 0;
  StreamMask streams = 0, kernel_streams = 0;
  bool syncs = false;
  // Instances with tasks in each stream, in order. CSR by stream.
  int32_t stream_begin[kNumStreams + 1] = {};
  std::vector<int32_t> instances_of_streams;
  // Per instance.
  std::vector<int64_t> issue_begin, launches_before;
  std::vector<int32_t> sync_before;  // the last instance before that has a sync, or -1
  // Launches of CUDA graphs up to the instance and with it; empty without graphs.
  std::vector<int32_t> graphs;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_INDEX_BLOCK_INDEX_H_
