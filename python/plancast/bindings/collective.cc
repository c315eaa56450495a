#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/suggest.h"
#include "collectives/communicator.h"
#include "collectives/group_shape.h"
#include "collectives/price.h"
#include "collectives/realise.h"
#include "executor/chunks/realise_chunks.h"
#include "graph/collective_kind.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"
#include "python/plancast/bindings/unlocked.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                     CollectiveKind::kSendRecv,      CollectiveKind::kBroadcast};

CollectiveKind KindOf(const std::string& name) {
  std::vector<absl::string_view> names;
  for (const CollectiveKind kind : kKinds) {
    if (kCollectiveKindNames[kind] == name) return kind;
    names.push_back(kCollectiveKindNames[kind]);
  }
  ThrowStatus(
      absl::InvalidArgumentError(absl::StrCat("no collective `", name, "`.", Offer(name, names))));
}

py::tuple ChoiceOf(const NcclChoice& choice) {
  return py::make_tuple(std::string(kNcclAlgorithmNames[choice.algorithm]),
                        std::string(kProtocolNames[choice.protocol]), choice.channels, choice.us);
}

}  // namespace

void BindCollective(py::module_& m) {
  m.def(
      "collective_times",
      [](const PyMachine& machine, const std::string& kind, const std::vector<int64_t>& devices,
         const std::vector<int64_t>& sizes, const std::string& algorithm,
         const std::string& protocol, bool chunks) {
        CollectivePolicy policy;
        policy.algorithm = algorithm;
        policy.protocol = protocol;
        const GroupPattern group = GroupPattern::Of(devices);
        py::list rows;
        for (const int64_t bytes : sizes) {
          const auto realise = chunks ? RealiseByChunks : Realise;
          const CollectiveKind collective = KindOf(kind);
          const RealisedCollective realised =
              Unlocked([&] { return realise(machine.machine, group, collective, bytes, policy); });
          rows.append(py::make_tuple(AloneTime(machine.machine, realised), realised.algorithm,
                                     realised.protocol, realised.channels,
                                     realised.provenance.source, realised.factor_sigma));
        }
        return rows;
      },
      py::arg("machine"), py::arg("kind"), py::arg("devices"), py::arg("sizes"),
      py::arg("algorithm") = "", py::arg("protocol") = "", py::arg("chunks") = false);
  m.def(
      "nccl_choices",
      [](const PyMachine& machine, const std::string& kind, const std::vector<int64_t>& devices,
         const std::vector<int64_t>& sizes, const std::string& version, bool nvls) {
        const SectionShapes shapes =
            ValueOrThrow(ShapesOf(machine.machine, GroupPattern::Of(devices)));
        const auto nccl_kind = NcclKindOf(KindOf(kind));
        py::list rows;
        if (!nccl_kind || shapes[0].shape.members < 2) {
          for (size_t i = 0; i < sizes.size(); ++i) rows.append(py::none());
          return rows;
        }
        const NcclTuner tuner = ValueOrThrow(NcclTuner::Create(
            CommunicatorOf(machine.machine, shapes, ValueOrThrow(ParseNcclVersion(version)))));
        NcclConstraints constraints;
        constraints.nvls = nvls;
        for (const int64_t bytes : sizes) {
          const auto choice = tuner.Choose(*nccl_kind, bytes, constraints);
          rows.append(choice ? py::object(ChoiceOf(*choice)) : py::none());
        }
        return rows;
      },
      py::arg("machine"), py::arg("kind"), py::arg("devices"), py::arg("sizes"),
      py::arg("version") = "2.27", py::arg("nvls") = true);
}

}  // namespace plancast
