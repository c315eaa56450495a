#ifndef PLANCAST_STRATEGY_NODES_HOMES_H_
#define PLANCAST_STRATEGY_NODES_HOMES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/enum_names.h"

namespace plancast {

// What has a home: parameters between steps, their gradients once they are reduced, the
// optimizer's state with its update, and what forward passes keep for backward ones.
enum class HomeKind : uint8_t { kWeights, kGradients, kState, kActivations };
inline constexpr auto kHomeKindNames =
    NamesOf<HomeKind>("weights", "gradients", "state", "activations");
inline constexpr int kNumHomeKinds = 4;

// Where tensors of one kind live: whole on every device that works with them, or shared out
// over the ranks of mesh axes, a part to each or all to one; on the device, or in the memory of
// its host, from where they are fetched. Activations wait where they are made, shared out over
// ranks that have the same, on the host, or on the devices of another pipeline stage, a rank of
// `pp`.
struct Home {
  std::string axis;  // `dp`; several in the order of their names, `dp,tp`; empty: whole
  bool on_host = false;
  std::optional<int64_t> rank = std::nullopt;  // of the axis, which keeps all

  bool sharded() const { return !axis.empty(); }
  std::vector<std::string> axes() const;
  bool SharedAs(const Home& other) const { return axis == other.axis && rank == other.rank; }
  friend bool operator==(const Home& a, const Home& b) {
    return a.SharedAs(b) && a.on_host == b.on_host;
  }
};

// `replicate`, `shard(AXIS)`, `shard(AXIS,AXIS)`, `on(AXIS=RANK)`, `host`, `shard(AXIS)+host`; of
// activations `device`, `shard(AXIS)`, `shard(AXIS,AXIS)`, `host`, `shard(AXIS)+host`,
// `on(pp=STAGE)`.
// Errors: other words; kUnimplemented for `on(AXIS=RANK)+host`.
absl::StatusOr<Home> ParseHome(HomeKind kind, absl::string_view text);
std::string PrintHome(HomeKind kind, const Home& home);

// What one node says of homes, by kind.
//
// Sharding goes from the state to the weights: who keeps a shard of the weights updates
// that shard alone, so it needs no more of gradients and state. A kind that is not said
// follows: sharded weights shard gradients and state, sharded gradients the state; a whole
// state leaves gradients and weights whole, whole gradients the weights. Likewise the host
// updates what is whole there: weights bring gradients and state there, gradients the state.
struct HomeDirective {
  std::array<std::optional<Home>, kNumHomeKinds> of;

  std::optional<Home>& operator[](HomeKind kind) { return of[static_cast<int>(kind)]; }
  const std::optional<Home>& operator[](HomeKind kind) const { return of[static_cast<int>(kind)]; }
  bool empty() const;
  // How the node shares a kind out, of any place; absent if it does not say; what follows from
  // other kinds included.
  std::optional<Home> SharingOf(HomeKind kind) const;
  // Over which axis, "" for whole.
  std::optional<std::string> AxisOf(HomeKind kind) const;
  std::optional<bool> OnHost(HomeKind kind) const;
  // `shard(dp)`, the state's alone, or `weights shard(dp), state host`.
  std::string DebugString() const;
  // Errors: homes that contradict each other.
  absl::Status Check() const;
};
// `over` in place of what `base` says.
HomeDirective Merged(const HomeDirective& base, const HomeDirective& over);

// What holds for an op. How much is sharded as `zero` counts: 1 state, 2 and gradients, 3 and
// weights.
struct TensorHomes {
  std::array<Home, kNumHomeKinds> of;

  const Home& operator[](HomeKind kind) const { return of[static_cast<int>(kind)]; }
  Home& operator[](HomeKind kind) { return of[static_cast<int>(kind)]; }
  int zero() const;
  friend bool operator==(const TensorHomes& a, const TensorHomes& b) { return a.of == b.of; }
};
// Gradients that are sharded are where the update is.
void SettlePlaces(TensorHomes* homes);

}  // namespace plancast

#endif  // PLANCAST_STRATEGY_NODES_HOMES_H_
