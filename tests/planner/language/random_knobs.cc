#include "tests/planner/language/random_knobs.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace plancast {

using Texts = std::vector<std::string>;

void DrawSharding(Dice& dice, ShortForm* form) {
  if (dice.Maybe(2)) form->zero = dice.Of<int64_t>({1, 1, 2, 3, 3});
  if (dice.Maybe(6)) form->hsdp = dice.Of<int64_t>({1, 2});
  if (form->zero == 3 && dice.Maybe(3)) form->reshard = dice.Of<std::string>({"on", "off", "2"});
  if (form->zero == 3 && dice.Maybe(2)) form->prefetch = dice.Of<int64_t>({0, 2, 5});
  if (dice.Maybe(3)) form->sync = dice.Of<std::string>({"each", "last"});
  if (dice.Maybe(6)) form->optimizer = dice.Of<std::string>({"post-validated", "in-backward"});
}

void DrawRecompute(Dice& dice, ShortForm* form) {
  if (dice.Maybe(2)) return;
  form->recompute =
      dice.Of<std::string>({"none", "selective", "selective", "full", "every", "uniform"});
  if (*form->recompute == "selective" && dice.Maybe(2)) {
    const Texts words = {"core_attn", "layernorm", "mla_up_proj", "mlp",
                         "moe",       "moe_act",   "op",          "shared_experts"};
    std::copy_if(words.begin(), words.end(), std::back_inserter(form->recompute_ops),
                 [&](const std::string&) { return dice.Maybe(3); });
  }
  if (*form->recompute == "every" || *form->recompute == "uniform") form->recompute_layers = 2;
  if (*form->recompute == "full" && dice.Maybe(3)) form->recompute_layers = 1;
}

}  // namespace plancast
