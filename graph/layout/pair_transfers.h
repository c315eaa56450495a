#ifndef PLANCAST_GRAPH_LAYOUT_PAIR_TRANSFERS_H_
#define PLANCAST_GRAPH_LAYOUT_PAIR_TRANSFERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/device_mesh.h"
#include "graph/layout/layout.h"
#include "graph/layout/tiling.h"

namespace plancast {

// A tensor laid out over a mesh whose device m is device `first_device` + m of the machine.
struct ReshardSide {
  DeviceMesh mesh;
  Layout layout;
  int64_t first_device = 0;
};

// The message from device `source` of the source's mesh to device `target` of the target's.
struct Transfer {
  int64_t source = 0, target = 0;
  int64_t elements = 0;

  friend bool operator==(const Transfer& a, const Transfer& b) {
    return a.source == b.source && a.target == b.target && a.elements == b.elements;
  }
};

// Devices of one mesh that send, or receive, as many messages of the same sizes.
struct TransferClass {
  std::vector<int64_t> messages;  // elements of each, the largest first; may be empty
  std::vector<int64_t> devices;   // ascending

  int64_t elements() const;
};

// Who sends which part of a tensor to whom when it goes from one mesh to another.
//
// A piece is what a tile of the source and one of the target have in common. Each device of the
// target receives every piece of its tile once, from one of the devices that hold it, except the
// piece that it has already because it is a device of the source as well. So it receives exactly
// what it lacks, which is the least there is.
//
// The devices that hold copies of a tile share the sending of its pieces: with no more messages
// than copies each sends one at most, else the largest go first, each to the copy with the fewest
// elements so far (Graham's LPT rule). Where sizes agree the copies' messages differ by
// one at most. Between equal meshes with equal layouts device m sends to device m.
//
// Halos of the source are not sent, those of the target are received like all else.
//
// Cost: pieces are products of the dims' overlaps, and source tiles that go to the same
// devices in the same sizes share one list. Planning takes time in proportion to the devices and
// these lists, not to the pairs; what walks the messages says so.
class PairTransfers {
 public:
  // kInvalidArgument: a layout does not fit its mesh, an axis of more than one device with partial
  // values, a negative size, more elements than 64 bits count.
  static absl::StatusOr<PairTransfers> Plan(absl::Span<const int64_t> shape,
                                            const ReshardSide& source, const ReshardSide& target);

  // Between tilings of one tensor; device t of the target is device t + `offset` of the source's
  // mesh, if there is one. `once`: each piece goes to one of the devices that want it, to their
  // copies of the tile in turn.
  static PairTransfers Between(Tiling source, Tiling target, int64_t offset, bool once);

  // All that moves, and what devices of both meshes have already.
  int64_t elements() const { return elements_; }
  int64_t messages() const { return messages_; }
  int64_t kept() const { return kept_; }

  // The most pieces that a tile of the target has along a dim.
  int64_t MostPieces(int dim) const;

  // The messages of one device, in ascending order of the others. At most as many as these.
  std::vector<Transfer> From(int64_t source) const;
  std::vector<Transfer> To(int64_t target) const;
  // Every message, source tile by source tile.
  void ForEach(const std::function<void(const Transfer&)>& visit) const;
  // The indices, per dim, of what the tiles of two devices have in common: the content of the
  // message between them.
  std::vector<IndexSet> Box(int64_t source, int64_t target) const;

  // The devices of either mesh by what they send or receive; classes in the order of their first
  // devices. Walks the messages.
  std::vector<TransferClass> Senders() const;
  std::vector<TransferClass> Receivers() const;

  const Tiling& source() const { return source_; }
  const Tiling& target() const { return target_; }

  // `0 -> 3: 4096 [0:2, 0:2048]`, one message a line.
  std::string DebugString() const;

 private:
  // A part of the other side's dim, and what it has in common with one of this side's.
  struct Overlap {
    int32_t part = 0;
    int64_t elements = 0;

    friend bool operator==(Overlap a, Overlap b) {
      return a.part == b.part && a.elements == b.elements;
    }
    friend bool operator<(Overlap a, Overlap b) {
      return a.part != b.part ? a.part < b.part : a.elements < b.elements;
    }
  };
  using Overlaps = std::vector<std::vector<Overlap>>;  // by part of one side, ascending

  // The messages of a source tile, and of all that have the same.
  struct TileClass {
    std::vector<int32_t> targets;  // ascending devices
    std::vector<int64_t> elements;
    std::vector<int32_t> copies;      // which copy of the tile sends it
    std::vector<int32_t> copy_begin;  // by copy, into `by_copy`; one more than copies
    std::vector<int32_t> by_copy;     // messages of each copy
  };

  // The overlaps in one dim, by part of the target and by part of the source.
  static Overlaps OverlapsOf(const std::vector<IndexSet>& source,
                             const std::vector<IndexSet>& target);
  static Overlaps Transposed(const Overlaps& overlaps, size_t parts);
  void PlanTiles();
  TileClass PlanTile(int64_t tile, bool shared);
  void AssignCopies(TileClass* tile) const;
  // The place of the source tile of these parts among those of a target tile.
  int64_t RankIn(const std::vector<int>& held, const std::vector<int>& wanted) const;
  // The source's number of a device of the target, or -1.
  int64_t SourceDevice(int64_t target) const;

  Tiling source_, target_;
  int64_t offset_ = 0;
  bool once_ = false;
  std::vector<Overlaps> by_source_, by_target_;  // by dim
  std::vector<int32_t> class_of_;                // by source tile
  std::vector<TileClass> classes_;
  int64_t elements_ = 0, messages_ = 0, kept_ = 0;
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_LAYOUT_PAIR_TRANSFERS_H_
