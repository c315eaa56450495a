#include <string>

#include "absl/strings/str_cat.h"
#include "strategy/plan_options.h"
#include "strategy/schedule/schedule_table.h"
#include "strategy/schedule/schedule_word.h"
#include "strategy/short_form.h"

// What this version simulates of the strategy language. A key leaves this file
// when its simulation lands.

namespace plancast {
absl::Status CheckSupported(const ShortForm& form) {
  if (form.schedule.has_value() && !LooksLikeScheduleTable(*form.schedule) &&
      !ReadScheduleWord(*form.schedule).has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule=", *form.schedule,
        " names a file, and nobody has read it. `Strategy.open`, `from_dict` and the command "
        "line read it; here give the table itself, as in `F0.0 F1.0 B0.0 B1.0;F0.0 B0.0 F1.0 "
        "B1.0`."));
  }
  return absl::OkStatus();
}

}  // namespace plancast
