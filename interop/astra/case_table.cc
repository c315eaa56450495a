#include "interop/astra/case_table.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "interop/astra/csv_rows.h"
#include "interop/astra/system_words.h"

namespace plancast {
namespace {

// A row whose fields are found by column.
class Fields {
 public:
  Fields(const CsvRow& header, const CsvRow& row, absl::string_view what)
      : header_(header), row_(row), what_(what) {}

  absl::StatusOr<std::string> Text(absl::string_view column) const {
    for (size_t i = 0; i < header_.fields.size() && i < row_.fields.size(); ++i) {
      if (header_.fields[i] == column) return row_.fields[i];
    }
    return Bad(column, absl::StrCat("there is no such column. The header must name it.",
                                    DidYouMean(column, header_.fields)));
  }
  std::string TextOr(absl::string_view column, absl::string_view otherwise) const {
    const auto text = Text(column);
    return text.ok() ? *text : std::string(otherwise);
  }
  absl::StatusOr<double> Number(absl::string_view column, absl::string_view text) const {
    double value = 0;
    if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) {
      return Bad(column, absl::StrCat("`", text, "` is not a number"));
    }
    return value;
  }
  absl::StatusOr<int64_t> Whole(absl::string_view column) const {
    ASSIGN_OR_RETURN(const std::string text, Text(column));
    int64_t value = 0;
    if (!absl::SimpleAtoi(text, &value)) {
      return Bad(column, absl::StrCat("`", text, "` is not a whole number"));
    }
    return value;
  }
  absl::Status Bad(absl::string_view column, absl::string_view why) const {
    return absl::InvalidArgumentError(
        absl::StrCat(what_, ":", row_.line, ": column `", column, "`: ", why));
  }
  absl::Status At(absl::string_view column, const absl::Status& status) const {
    return Bad(column, status.message());
  }

 private:
  const CsvRow& header_;
  const CsvRow& row_;
  absl::string_view what_;
};

absl::StatusOr<std::vector<std::string>> List(const Fields& fields, absl::string_view column,
                                              size_t size) {
  ASSIGN_OR_RETURN(const std::string text, fields.Text(column));
  std::vector<std::string> items = absl::StrSplit(text, 'x');
  if (size > 0 && items.size() != size) {
    return fields.Bad(column, absl::StrCat("`", text, "` has ", items.size(),
                                           " entries; the topology has ", size, " dimensions"));
  }
  return items;
}

absl::Status ReadNetwork(const Fields& fields, AstraNetwork& network) {
  ASSIGN_OR_RETURN(const std::string backend, fields.Text("backend"));
  if (backend != "congestion_aware" && backend != "congestion_unaware") {
    return fields.Bad("backend", absl::StrCat("`", backend,
                                              "` is not one of `congestion_aware`, "
                                              "`congestion_unaware`"));
  }
  network.congestion_aware = backend == "congestion_aware";
  ASSIGN_OR_RETURN(const auto topology, List(fields, "topology", 0));
  ASSIGN_OR_RETURN(const auto npus, List(fields, "npus_per_dim", topology.size()));
  ASSIGN_OR_RETURN(const auto bandwidth, List(fields, "bandwidth_GiBps", topology.size()));
  ASSIGN_OR_RETURN(const auto latency, List(fields, "latency_ns", topology.size()));
  for (size_t d = 0; d < topology.size(); ++d) {
    AstraNetwork::Dim dim;
    const auto wiring = AstraWiringFrom(topology[d]);
    if (!wiring.ok()) return fields.At("topology", wiring.status());
    dim.wiring = *wiring;
    if (!absl::SimpleAtoi(npus[d], &dim.npus)) {
      return fields.Bad("npus_per_dim", absl::StrCat("`", npus[d], "` is not a whole number"));
    }
    ASSIGN_OR_RETURN(dim.gib_per_s, fields.Number("bandwidth_GiBps", bandwidth[d]));
    ASSIGN_OR_RETURN(dim.latency_ns, fields.Number("latency_ns", latency[d]));
    network.dims.push_back(dim);
  }
  ASSIGN_OR_RETURN(const int64_t queues, fields.Whole("num_queues_per_dim"));
  network.queues_per_dim = static_cast<int>(std::min<int64_t>(queues, 1 << 20));
  if (absl::Status status = network.Verify(); !status.ok()) return fields.At("topology", status);
  return absl::OkStatus();
}

absl::Status ReadSystem(const Fields& fields, const AstraNetwork& network, AstraSystem& system) {
  ASSIGN_OR_RETURN(const auto algorithms, List(fields, "algorithm", network.dims.size()));
  for (const std::string& word : algorithms) {
    const auto algorithm = AstraAlgorithmFrom(word);
    if (!algorithm.ok()) return fields.At("algorithm", algorithm.status());
    for (auto* list : {&system.all_reduce, &system.all_gather, &system.reduce_scatter}) {
      list->push_back(*algorithm);
    }
    system.all_to_all.push_back(algorithm->kind == AstraAlgorithm::Kind::kHalvingDoubling
                                    ? AstraAlgorithm{AstraAlgorithm::Kind::kDirect}
                                    : *algorithm);
  }
  ASSIGN_OR_RETURN(const std::string order, fields.Text("scheduling"));
  const auto known = AstraOrderFrom(order);
  if (!known.ok()) return fields.At("scheduling", known.status());
  system.order = *known;
  ASSIGN_OR_RETURN(const std::string optimization, fields.Text("collective_optimization"));
  const auto aware = AstraOptimizationFrom(optimization);
  if (!aware.ok()) return fields.At("collective_optimization", aware.status());
  system.local_bw_aware = *aware;
  ASSIGN_OR_RETURN(const int64_t splits, fields.Whole("preferred_dataset_splits"));
  ASSIGN_OR_RETURN(const int64_t active, fields.Whole("active_chunks_per_dim"));
  system.splits = static_cast<int>(std::min<int64_t>(splits, 1 << 30));
  system.active_chunks = static_cast<int>(std::min<int64_t>(active, 1 << 30));
  ASSIGN_OR_RETURN(system.endpoint_delay_ns, fields.Whole("endpoint_delay"));
  ASSIGN_OR_RETURN(const std::string memory, fields.Text("local_mem_bw_GBps"));
  ASSIGN_OR_RETURN(system.local_mem_gb_per_s, fields.Number("local_mem_bw_GBps", memory));
  return absl::OkStatus();
}

// What ASTRA-sim said; -1 where the table does not.
absl::StatusOr<int64_t> Finish(const Fields& fields, absl::string_view column) {
  const std::string text = fields.TextOr(column, "");
  int64_t finish = -1;
  if (!text.empty() && (!absl::SimpleAtoi(text, &finish) || finish < 0)) {
    return fields.Bad(column, absl::StrCat("`", text, "` is no time; give whole nanoseconds, or ",
                                           "nothing where it is not known"));
  }
  return finish;
}

}  // namespace

absl::StatusOr<std::vector<AstraCase>> ReadAstraCases(absl::string_view csv,
                                                      absl::string_view what) {
  ASSIGN_OR_RETURN(const std::vector<CsvRow> rows, ReadCsvRows(csv, what));
  if (rows.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is empty; it must begin with a header that names the columns"));
  }
  std::vector<AstraCase> cases;
  for (size_t r = 1; r < rows.size(); ++r) {
    const Fields fields(rows[0], rows[r], what);
    AstraCase read;
    ASSIGN_OR_RETURN(read.name, fields.Text("case"));
    RETURN_IF_ERROR(ReadNetwork(fields, read.network));
    RETURN_IF_ERROR(ReadSystem(fields, read.network, read.system));
    ASSIGN_OR_RETURN(read.workload, fields.Text("workload"));
    ASSIGN_OR_RETURN(read.collective, fields.Text("collective"));
    ASSIGN_OR_RETURN(read.bytes, fields.Whole("bytes"));
    ASSIGN_OR_RETURN(read.finish_min_ns, Finish(fields, "finish_min_ns"));
    ASSIGN_OR_RETURN(read.finish_max_ns, Finish(fields, "finish_max_ns"));
    read.status = fields.TextOr("status", "ok");
    read.note = fields.TextOr("note", "");
    cases.push_back(std::move(read));
  }
  return cases;
}

}  // namespace plancast
