#include "graph/execution/program_devices.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace plancast {
namespace {

bool Runs(const DeviceMesh& mesh, const Program& program, int64_t device) {
  for (const auto& [axis, coordinate] : program.where) {
    if (mesh.Coordinate(device, axis) != coordinate) return false;
  }
  return true;
}

TEST(ProgramDevicesTest, FindsTheFirstDeviceOfARangeThatRunsAProgram) {
  std::mt19937 random(3);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  for (int i = 0; i < 2000; ++i) {
    const absl::StatusOr<DeviceMesh> mesh = DeviceMesh::Create(
        {{"a", 1 + below(4)}, {"b", 1 + below(5)}, {"c", 1 + below(3)}, {"d", 1 + below(4)}});
    ASSERT_TRUE(mesh.ok());
    Program program;
    for (int axis = 0; axis < 4; ++axis) {
      if (below(2) == 0) program.where.emplace_back(axis, below(mesh->size(axis)));
    }
    const int64_t begin = below(mesh->num_devices()), end = begin + below(mesh->num_devices() + 4);
    int64_t expected = -1;
    for (int64_t d = begin; d < std::min(end, mesh->num_devices()) && expected < 0; ++d) {
      if (Runs(*mesh, program, d)) expected = d;
    }
    EXPECT_EQ(FirstDeviceIn(*mesh, program, begin, end), expected) << mesh->DebugString();
  }
}

TEST(ProgramDevicesTest, AProgramHasTheLeastMemoryOfItsDevices) {
  const DeviceMesh mesh = *DeviceMesh::Create({{"pp", 2}, {"dp", 4}});
  MemoryOverhead overhead;
  overhead.capacity_bytes = 7;
  Program first, second;
  first.where = {{0, 0}};
  second.where = {{0, 1}};
  EXPECT_EQ(CapacityOf(overhead, mesh, first), 7);
  overhead.capacities = {{0, 3, 80}, {3, 8, 40}};
  EXPECT_EQ(CapacityOf(overhead, mesh, first), 40);
  EXPECT_EQ(CapacityOf(overhead, mesh, second), 40);
  overhead.capacities = {{0, 4, 80}, {4, 8, 40}};
  EXPECT_EQ(CapacityOf(overhead, mesh, first), 80);
}

}  // namespace
}  // namespace plancast
