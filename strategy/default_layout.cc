#include <algorithm>

#include "strategy/choose_plan.h"

namespace plancast {

std::vector<int64_t> DefaultLayout(int64_t layers, int64_t stages) {
  if (stages < 1 || layers < 1) return {};
  const int64_t each = layers / stages, surplus = layers % stages;
  std::vector<int64_t> layout(stages, each);
  if (surplus == 0) return layout;
  if ((layers + 2) % stages == 0) {
    std::fill(layout.begin(), layout.end(), (layers + 2) / stages);
    layout.front() -= 1;
    layout.back() -= 1;
    return layout;
  }
  if (each == 0) return {};
  const int64_t begin = (stages - surplus) / 2;
  for (int64_t i = begin; i < begin + surplus; ++i) layout[i] += 1;
  return layout;
}

}  // namespace plancast
