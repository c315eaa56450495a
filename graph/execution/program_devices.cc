#include "graph/execution/program_devices.h"

#include <algorithm>
#include <limits>

namespace plancast {

int64_t FirstDeviceIn(const DeviceMesh& mesh, const Program& program, int64_t begin, int64_t end) {
  end = std::min(end, mesh.num_devices());
  int64_t device = begin;
  bool moved = true;
  // Goes up to the next device with each coordinate, as long as one is wrong.
  while (moved && device < end) {
    moved = false;
    for (const auto& [axis, coordinate] : program.where) {
      const int64_t here = mesh.Coordinate(device, axis);
      if (here == coordinate) continue;
      const int64_t stride = mesh.stride(axis), size = mesh.size(axis);
      const int64_t steps = (coordinate - here + size) % size;
      device = (device / stride + steps) * stride;
      moved = true;
    }
  }
  return device < end ? device : -1;
}

int64_t FirstDeviceIn(const ExecutionGraph& graph, const Program& program, int64_t begin,
                      int64_t end) {
  const int64_t shift = graph.ShiftOf(program);
  const int64_t place = FirstDeviceIn(graph.MeshOf(program), program,
                                      std::max<int64_t>(0, begin - shift), end - shift);
  return place < 0 ? -1 : place + shift;
}

namespace {

// `runs_in(begin, end)`: whether a device there runs the program.
template <typename RunsIn>
int64_t LeastCapacity(const MemoryOverhead& overhead, const RunsIn& runs_in) {
  if (overhead.capacities.empty()) return overhead.capacity_bytes;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const MemoryOverhead::Capacity& at : overhead.capacities) {
    if (at.bytes < least && runs_in(at.begin, at.end)) least = at.bytes;
  }
  return least;
}

}  // namespace

int64_t CapacityOf(const MemoryOverhead& overhead, const DeviceMesh& mesh, const Program& program) {
  return LeastCapacity(overhead, [&](int64_t begin, int64_t end) {
    return FirstDeviceIn(mesh, program, begin, end) >= 0;
  });
}

int64_t CapacityOf(const MemoryOverhead& overhead, const ExecutionGraph& graph,
                   const Program& program) {
  return LeastCapacity(overhead, [&](int64_t begin, int64_t end) {
    return FirstDeviceIn(graph, program, begin, end) >= 0;
  });
}

}  // namespace plancast
