#include "collectives/nccl/search_rules.h"

#include "base/check.h"
#include "collectives/nccl/search_data.h"
#include "proto/nccl_rules.pb.h"
#include "proto/text_proto.h"

namespace plancast {
namespace {

struct Ladder {
  int compute_capability;
  bool inter;
  std::vector<float> rates;
};

struct Release {
  SearchRules rules;
  std::vector<Ladder> ladders;
};

Release Read(const proto::NcclSearch& search) {
  Release release;
  release.rules.max_channels = search.max_channels();
  release.rules.total_steps = search.total_steps();
  release.rules.attempt_steps = search.attempt_steps();
  release.rules.same_channels_steps = search.same_channels_steps();
  release.rules.pci_order_steps = search.pci_order_steps();
  for (const proto::SpeedLadder& ladder : search.ladder()) {
    release.ladders.push_back({ladder.compute_capability(),
                               ladder.inter(),
                               {ladder.gb_per_s().begin(), ladder.gb_per_s().end()}});
  }
  return release;
}

const Release& ReleaseOf(NcclVersion version) {
  static const auto& releases = *[] {
    const EmbeddedFile* file = FindByStem(SearchData(), "nccl_search");
    PLANCAST_CHECK(file != nullptr);
    auto catalogue = ParseTextProto<proto::NcclSearchCatalogue>(file->contents, file->path);
    PLANCAST_CHECK_OK(catalogue);
    auto* all = new std::vector<Release>();
    for (NcclVersion known : {NcclVersion::k2_17, NcclVersion::k2_27, NcclVersion::k2_30}) {
      for (const proto::NcclSearch& search : catalogue->release()) {
        if (search.version() == NcclVersionName(known)) all->push_back(Read(search));
      }
    }
    PLANCAST_CHECK_EQ(all->size(), 3u);
    return all;
  }();
  return releases[static_cast<int>(version)];
}

}  // namespace

const SearchRules& SearchRulesOf(NcclVersion version) { return ReleaseOf(version).rules; }

const std::vector<float>& SpeedLadder(NcclVersion version, int compute_capability, bool inter) {
  const Release& release = ReleaseOf(version);
  for (const Ladder& ladder : release.ladders) {
    if (ladder.inter == inter && compute_capability >= ladder.compute_capability) {
      return ladder.rates;
    }
  }
  PLANCAST_CHECK(false) << NcclVersionName(version) << " has no ladder";
  return release.ladders[0].rates;
}

}  // namespace plancast
