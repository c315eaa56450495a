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

int64_t CapacityOf(const MemoryOverhead& overhead, const DeviceMesh& mesh, const Program& program) {
  if (overhead.capacities.empty()) return overhead.capacity_bytes;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const MemoryOverhead::Capacity& at : overhead.capacities) {
    if (at.bytes >= least || FirstDeviceIn(mesh, program, at.begin, at.end) < 0) continue;
    least = at.bytes;
  }
  return least;
}

}  // namespace plancast
