#ifndef PLANCAST_EXECUTOR_GRADIENTS_GRADIENT_TRAFFIC_H_
#define PLANCAST_EXECUTOR_GRADIENTS_GRADIENT_TRAFFIC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace plancast {

// A part of a model that the forward pass runs at once, and whose gradients the backward pass has
// made when it is through with it.
struct GradientUnit {
  std::string name;
  int64_t forward_ps = 0, backward_ps = 0;
  int64_t update_ps = 0;  // of its parameters, once their gradients are summed
  int64_t bytes = 0;      // of its gradients as they are sent
};

// When gradients are sent, in what pieces, and who sums them. Each figure is one of a software's
// knobs; none is a mechanism of its own.
struct GradientTraffic {
  // Gradients of units are joined, in the order in which they are made, until a message has so
  // many bytes; 0: each by itself. The first message may be smaller (0: it is as the others).
  int64_t bucket_bytes = 0, first_bucket_bytes = 0;
  // Messages are sent in parts of so many bytes at most; 0: whole.
  int64_t partition_bytes = 0;
  // Parts wait for their turn: those of the unit that runs forward first go first, else in the
  // order in which they are made.
  bool by_priority = false;
  // Of parts in flight (CommQueue); 1: one at a time; 0: one at a time to each server, as over
  // connections that know nothing of one another.
  int64_t credit_bytes = 1;
  // The next forward pass begins when all gradients are summed and all parameters updated; else
  // each of its units waits for its own.
  bool waits_for_all = true;
  int64_t overhead_ps = 0;  // of each part: launches, copies through hosts

  // What a worker's kernels take of each byte that is sent, as it is made (casts, copies into the
  // bucket) and when its sum is there (casts and copies back): in the order of the messages.
  double pack_s_per_byte = 0, unpack_s_per_byte = 0;
  // Behind everything else of a backward pass a message of so many bytes, such as which parameters
  // were used; 0: none.
  int64_t flag_bytes = 0;

  int64_t host_ps = 0;  // of the host in each iteration, before its first forward pass

  // Passes of an iteration, and whether each sends (DDP without `no_sync`) or the last alone.
  int64_t passes = 1;
  bool each_pass_sends = false;

  // Hosts behind those of the workers that sum in their memory what workers push, and from which
  // they pull the sums; one server at each of their interfaces. 0: all-reduces among the workers.
  int64_t server_hosts = 0;
  // Whether workers of a host sum among themselves before each pushes its share; else each pushes
  // all.
  bool sums_in_hosts = true;
  // Whole messages of at least so many bytes go to all servers, each its part; 0: none do.
  int64_t spread_bytes = 0;

  // In place of the machine's prices: what links are known to reach, as `bytes_per_s` of a
  // message, of an all-reduce as bus bandwidth, of which messages of `half_bytes` reach a half.
  struct Line {
    double bytes_per_s = 0;
    double half_bytes = 0;
  };
  std::optional<Line> line = std::nullopt;

  absl::Status Verify() const;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_GRADIENTS_GRADIENT_TRAFFIC_H_
