#include "collectives/nccl/tuner_tables.h"

#include <limits>

#include "base/check.h"
#include "collectives/nccl/tuner.h"
#include "collectives/protocol_data.h"
#include "proto/nccl_tuner.pb.h"
#include "proto/text_proto.h"

namespace plancast {
namespace {

using Triple = NcclTunerTables::Triple;

template <typename Values>
Triple TripleOf(const Values& values) {
  PLANCAST_CHECK(values.size() == 3 || values.empty());
  Triple triple = {};
  for (int i = 0; i < values.size(); ++i) triple[i] = values[i];
  return triple;
}

NcclTunerTables TablesOf(const proto::NcclTunerVersion& proto) {
  NcclTunerTables tables;
  for (const proto::NcclLatency& entry : proto.latency()) {
    const auto algorithm = ParseNcclAlgorithm(entry.algorithm());
    PLANCAST_CHECK_OK(algorithm);
    NcclTunerTables::Latency& latency = tables.latency[static_cast<int>(*algorithm)];
    latency.base = TripleOf(entry.base().us());
    latency.hardware[NcclTunerTables::kNvlink] = TripleOf(entry.nvlink().us());
    latency.hardware[NcclTunerTables::kPci] = TripleOf(entry.pci().us());
    latency.hardware[NcclTunerTables::kNet] = TripleOf(entry.net().us());
  }
  for (const proto::NcclGeneration& entry : proto.generation()) {
    NcclTunerTables::Generation generation;
    generation.compute_capability = entry.compute_capability();
    generation.ll_max = TripleOf(entry.ll_max());
    generation.ring_ll128 = TripleOf(entry.ring_ll128_per_channel());
    generation.tree_ll128 = TripleOf(entry.tree_ll128_per_channel());
    generation.tree = TripleOf(entry.tree_per_channel());
    generation.nvls_tree = TripleOf(entry.nvls_tree_per_channel());
    generation.nvls_efficiency = entry.nvls_efficiency();
    generation.bus_max =
        entry.has_bus_max() ? entry.bus_max() : std::numeric_limits<double>::infinity();
    tables.generations.push_back(generation);
  }
  PLANCAST_CHECK(!tables.generations.empty());
  const auto copy = [&](Protocol protocol, const auto& values) {
    tables.tree_correction[static_cast<int>(protocol)].assign(values.begin(), values.end());
  };
  copy(Protocol::kLl, proto.tree_correction_ll());
  copy(Protocol::kLl128, proto.tree_correction_ll128());
  copy(Protocol::kSimple, proto.tree_correction_simple());
  return tables;
}

}  // namespace

const NcclTunerTables::Generation& NcclTunerTables::Of(int compute_capability) const {
  const Generation* best = &generations[0];
  for (const Generation& generation : generations) {
    if (generation.compute_capability <= compute_capability) best = &generation;
  }
  return *best;
}

const NcclTunerTables& NcclTunerTables::Shipped(NcclVersion version) {
  static const auto& all = *[] {
    const EmbeddedFile* file = FindByStem(ProtocolData(), "nccl_tuner");
    PLANCAST_CHECK(file != nullptr);
    const auto proto = ParseTextProto<proto::NcclTuner>(file->contents, file->path);
    PLANCAST_CHECK_OK(proto);
    auto* tables = new std::array<NcclTunerTables, 3>;
    PLANCAST_CHECK(proto->version_size() == 3);
    for (const proto::NcclTunerVersion& entry : proto->version()) {
      const auto version = ParseNcclVersion(entry.version());
      PLANCAST_CHECK_OK(version);
      (*tables)[static_cast<int>(*version)] = TablesOf(entry);
    }
    return tables;
  }();
  return all[static_cast<int>(version)];
}

}  // namespace plancast
