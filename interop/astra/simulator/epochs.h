#ifndef PLANCAST_INTEROP_ASTRA_SIMULATOR_EPOCHS_H_
#define PLANCAST_INTEROP_ASTRA_SIMULATOR_EPOCHS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace plancast::astra {

// What came of a collective that all ranks began at one time, while nothing else
// was in flight, and that ended for all of them at one time: the same will come of
// it again. Times count from the beginning.
struct Epoch {
  struct Last {
    int32_t rank = 0;
    int32_t ordinal = 0;   // of its last chunk
    int64_t reminded = 0;  // when that told itself of its end
    int64_t reminder = 0;  // order among all
  };
  int64_t length = 0;
  int64_t messages = 0;
  std::vector<Last> lasts;  // in the order of their reminders
};

struct Epochs {
  // Began at `time`: (rank, collective), as they came.
  struct Begin {
    int32_t rank = 0, collective = 0;
  };
  int64_t time = -1;
  std::vector<Begin> begun;

  // Watched for its end: of what, from when on.
  bool watching = false;
  std::vector<int64_t> watched_key;
  int64_t watched_from = 0, messages_before = 0;
  Epoch watched;

  absl::flat_hash_map<std::vector<int64_t>, Epoch> known;

  // Ends that are being replayed: reminders of one time.
  struct Reminder {
    int32_t rank = 0, chunk = 0;
    int64_t delay = 0;
  };
  std::vector<std::vector<Reminder>> replays;
  std::vector<int32_t> free_replays;
};

}  // namespace plancast::astra

#endif  // PLANCAST_INTEROP_ASTRA_SIMULATOR_EPOCHS_H_
