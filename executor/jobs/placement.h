#ifndef PLANCAST_EXECUTOR_JOBS_PLACEMENT_H_
#define PLANCAST_EXECUTOR_JOBS_PLACEMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/machine.h"
#include "executor/jobs/placed_job.h"

namespace plancast {

// `hosts 0-3`, `hosts 0-3,6 gpus 0-3`, `gpus 0-3` (of every host),
// `devices 0-15,32`: devices of the machine, ascending. Errors quote the part
// that is wrong.
absl::StatusOr<std::vector<int64_t>> ParsePlacement(absl::string_view text, const Machine& machine);

// Every job has as many devices as its mesh, all on the machine, each once and
// none with another job; arrivals are not negative.
absl::Status CheckPlacements(absl::Span<const PlacedJob> jobs, const Machine& machine);

// Jobs in sets such that no message of one set crosses a link of another set.
// Each set ascends, and so do the sets by their first job.
std::vector<std::vector<int>> SetsThatShareLinks(absl::Span<const PlacedJob> jobs,
                                                 const Machine& machine);

// The machine with its devices numbered such that those of a job are the first,
// in order, if whole blocks (hosts, domains, pods) can be exchanged for that;
// else nothing. A job alone then behaves as on the first devices of it.
std::optional<Machine> Renumbered(const Machine& machine, absl::Span<const int64_t> devices);

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_JOBS_PLACEMENT_H_
