#include "executor/fold/mixed_radix.h"

#include <algorithm>

#include "executor/fold/blocks.h"

namespace plancast {
std::optional<MixedRadix> MixedRadix::Split(const DeviceMesh& mesh, const Machine& machine,
                                            bool host_memory) {
  if (!LinksServeWholeDevices(machine, host_memory)) return std::nullopt;
  std::vector<int64_t> cuts = BlocksOf(machine, host_memory);
  cuts.insert(cuts.end(), {1, mesh.num_devices()});
  for (int axis = 0; axis < mesh.num_axes(); ++axis) cuts.push_back(mesh.stride(axis));
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  // A block that holds the whole mesh cuts nothing.
  while (cuts.back() > mesh.num_devices()) cuts.pop_back();

  MixedRadix radix;
  for (size_t i = 1; i < cuts.size(); ++i) {
    if (cuts[i] % cuts[i - 1] != 0) return std::nullopt;
    Digit digit;
    digit.size = cuts[i] / cuts[i - 1];
    digit.stride = cuts[i - 1];
    for (int axis = 0; axis < mesh.num_axes(); ++axis) {
      const int64_t stride = mesh.stride(axis);
      if (stride <= digit.stride && digit.stride < stride * mesh.size(axis)) digit.axis = axis;
    }
    radix.digits.push_back(digit);
  }
  for (size_t link = 0; link < machine.link_classes().size(); ++link) {
    uint64_t mask = 0;
    for (size_t d = 0; d < radix.digits.size(); ++d) {
      const int64_t first = machine.LinkInstance(static_cast<int>(link), 0);
      if (machine.LinkInstance(static_cast<int>(link), radix.digits[d].stride) != first) {
        mask |= uint64_t{1} << d;
      }
    }
    radix.link_digits.push_back(mask);
  }
  return radix;
}

}  // namespace plancast
