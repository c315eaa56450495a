#include "cost_models/records/record_set.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

// Eager timings below this many times their floor tell about the host, as
// `plancast calibrate` has it (docs/cost_models.md).
constexpr double kAboveLaunch = 3;
// Assumed where the store cannot tell: what the same kernel differs by from run to
// run, and what one GPU differs by from another of its name.
constexpr double kRepeatability = 0.03, kSharedSigma = 0.03;
// Clocks alone move a kernel by this much.
constexpr double kLeastSigma = 0.01;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool IsEager(const Sample& sample) { return absl::StartsWith(sample.timing, "event_eager"); }

// The least eager timing of each GPU and library.
std::map<std::string, double> LaunchFloors(const std::vector<Record>& records) {
  std::map<std::string, double> floors;
  for (const Record& record : records) {
    for (const Sample& sample : record.samples) {
      if (!IsEager(sample)) continue;
      double& floor =
          floors.try_emplace(absl::StrCat(record.key.gpu, "|", record.key.library), sample.seconds)
              .first->second;
      floor = std::min(floor, sample.seconds);
    }
  }
  return floors;
}

// One sigma of the logarithm, from several samples or from the range of one's
// repetitions; negative if neither is known. The range of n normal values is
// about 0.55 + ln n sigmas.
double Spread(const std::vector<Sample>& samples) {
  const auto n = static_cast<double>(samples.size());
  if (samples.size() > 1) {
    double sum = 0, squares = 0;
    for (const Sample& sample : samples) sum += std::log(sample.seconds);
    for (const Sample& sample : samples) {
      const double d = std::log(sample.seconds) - sum / n;
      squares += d * d;
    }
    return std::sqrt(squares / (n - 1));
  }
  const Sample& only = samples.front();
  if (only.seconds_min <= 0 || only.seconds_max <= only.seconds_min) return -1;
  return std::log(only.seconds_max / only.seconds_min) /
         (0.55 + std::log(static_cast<double>(std::max<int64_t>(only.count, 2))));
}

std::string GroupText(const KernelKey& key, absl::string_view gpu) {
  return absl::StrCat(gpu, "|", key.op, "|", key.dtype, "|", key.layout);
}

std::string ExactText(const KernelKey& key, absl::string_view gpu) {
  return absl::StrCat(GroupText(key, gpu), "|", key.shape);
}

std::string SourceText(const Record& record) {
  const Sample& last = record.samples.back();
  return absl::StrCat(
      record.key.library, record.key.version.empty() ? "" : " ", record.key.version,
      record.key.library.empty() ? "" : ", ", "measured ",
      record.samples.size() == 1 ? "once" : absl::StrCat(record.samples.size(), " times"), " (",
      last.source, last.date.empty() ? "" : " ", last.date, ")");
}

// The records of one kernel by several libraries and versions: the middle one.
MeasuredKernel Middle(const KernelSpec& kernel, std::vector<const Record*> records) {
  std::sort(records.begin(), records.end(),
            [](const Record* a, const Record* b) { return a->seconds() < b->seconds(); });
  const Record& middle = *records[(records.size() - 1) / 2];
  MeasuredKernel out;
  out.kernel = kernel;
  out.seconds = middle.seconds();
  out.source = SourceText(middle);
  out.sigma = Spread(middle.samples);
  if (records.size() > 1) {
    absl::StrAppend(&out.source, ", the middle of ", records.size());
    std::vector<Sample> bests;
    for (const Record* record : records) {
      bests.emplace_back();
      bests.back().seconds = record->seconds();
    }
    out.sigma = std::max(out.sigma, Spread(bests));
  }
  return out;
}

// The kernels that two sources measured, by pairs of sources, as logarithms of ratios.
using Ratios = std::map<std::pair<std::string, std::string>, std::vector<double>>;

void NoteSources(const std::vector<const Record*>& records, Ratios* ratios) {
  std::map<std::string, double> best;
  for (const Record* record : records) {
    for (const Sample& sample : record->samples) {
      double& seconds = best.try_emplace(sample.source, sample.seconds).first->second;
      seconds = std::min(seconds, sample.seconds);
    }
  }
  for (auto a = best.begin(); a != best.end(); ++a) {
    for (auto b = std::next(a); b != best.end(); ++b) {
      (*ratios)[{a->first, b->first}].push_back(std::log(a->second / b->second));
    }
  }
}

// The largest distance of two sources that share enough kernels; negative if none do.
double SourcesApart(const Ratios& ratios) {
  constexpr size_t kEnough = 10;
  double apart = -1;
  for (const auto& [pair, values] : ratios) {
    if (values.size() >= kEnough) apart = std::max(apart, std::abs(Median(values)));
  }
  return apart;
}

}  // namespace

namespace {

// By how much tiles of `tile` x `tile` results pad square images, in octaves: Winograd's algorithm,
// which is for windows that move by one, computes whole ones.
double Padding(const KernelSpec& kernel, int64_t tile) {
  if (kernel.window == 1 || kernel.stride > 1 || kernel.width < 1) return 0;
  const int64_t padded = (kernel.width + tile - 1) / tile * tile;
  return 2 * std::log2(static_cast<double>(padded) / static_cast<double>(kernel.width));
}

}  // namespace

std::vector<double> ShapePoint(const KernelSpec& kernel) {
  std::vector<double> point;
  const auto add = [&](double size) { point.push_back(std::log2(std::max(size, 1.0))); };
  switch (kernel.family) {
    case KernelFamily::kConvolution:
      add(static_cast<double>(kernel.window));
      add(static_cast<double>(kernel.stride));
      add(static_cast<double>(kernel.width));
      for (int64_t tile : {4, 8}) point.push_back(Padding(kernel, tile));
      [[fallthrough]];
    case KernelFamily::kGemm:
      for (int64_t size : {kernel.batch, kernel.m, kernel.n, kernel.k}) {
        add(static_cast<double>(size));
      }
      break;
    case KernelFamily::kAttention:
      for (int64_t size : {kernel.batch, kernel.heads, kernel.kv_heads, kernel.q_len, kernel.kv_len,
                           kernel.head_dim, kernel.head_dim_v}) {
        add(static_cast<double>(size));
      }
      if (kernel.kv_heads < 1) point[2] = point[1];
      if (kernel.head_dim_v < 1) point[6] = point[5];
      break;
    case KernelFamily::kMemory:
    case KernelFamily::kOptimizer:
      add(kernel.read_bytes + kernel.write_bytes);
      add(kernel.launches);
      break;
  }
  return point;
}

absl::StatusOr<std::shared_ptr<const RecordSet>> RecordSet::Load(const RecordStore& store,
                                                                 const RecordFilter& filter) {
  ASSIGN_OR_RETURN(std::vector<Record> records, store.Select(filter));
  const std::map<std::string, double> floors = LaunchFloors(records);
  for (Record& record : records) {
    const auto floor = floors.find(absl::StrCat(record.key.gpu, "|", record.key.library));
    const double least = floor == floors.end() ? 0 : kAboveLaunch * floor->second;
    record.samples.erase(
        std::remove_if(record.samples.begin(), record.samples.end(),
                       [&](const Sample& s) { return IsEager(s) && s.seconds < least; }),
        record.samples.end());
  }
  // In the store's order, so that a set is the same at every load.
  std::vector<std::vector<const Record*>> kernels;
  absl::flat_hash_map<std::string, size_t> kernel_of;
  for (const Record& record : records) {
    if (record.samples.empty()) continue;
    const auto [found, added] =
        kernel_of.try_emplace(ExactText(record.key, record.key.gpu), kernels.size());
    if (added) kernels.emplace_back();
    kernels[found->second].push_back(&record);
  }
  auto set = std::make_shared<RecordSet>();
  std::map<std::string, Ratios> sources;
  std::map<std::string, std::vector<double>> spreads;
  for (const std::vector<const Record*>& same : kernels) {
    const KernelKey& key = same[0]->key;
    ASSIGN_OR_RETURN(const KernelSpec kernel, SpecOf(key), _ << "`" << store.path() << "`");
    NoteSources(same, &sources[key.gpu]);
    MeasuredKernel measured = Middle(kernel, same);
    if (measured.sigma >= 0) spreads[key.gpu].push_back(measured.sigma);
    const auto [found, added] =
        set->group_of_.try_emplace(GroupText(key, key.gpu), static_cast<int>(set->groups_.size()));
    if (added) {
      set->groups_.push_back(
          {absl::StrCat(key.op, " ", key.dtype, key.layout.empty() ? "" : " ", key.layout),
           0,
           {},
           {}});
    }
    MeasuredGroup& group = set->groups_[found->second];
    const std::vector<double> point = ShapePoint(kernel);
    group.dims = static_cast<int>(point.size());
    set->exact_[ExactText(key, key.gpu)] = {found->second, static_cast<int>(group.kernels.size())};
    group.kernels.push_back(std::move(measured));
    group.points.insert(group.points.end(), point.begin(), point.end());
  }
  for (const auto& [gpu, ratios] : sources) {
    const double apart = SourcesApart(ratios);
    set->shared_sigma_[gpu] = apart < 0 ? kSharedSigma : std::max(apart, kLeastSigma);
  }
  for (const auto& [text, place] : set->exact_) {
    const std::string gpu = text.substr(0, text.find('|'));
    double& sigma = set->groups_[place.group].kernels[place.kernel].sigma;
    const std::vector<double>& known = spreads[gpu];
    if (sigma < 0) sigma = known.empty() ? kRepeatability : Median(known);
    sigma = std::max(sigma, kLeastSigma);
  }
  return set;
}

const MeasuredKernel* RecordSet::Find(const KernelSpec& kernel, absl::string_view gpu) const {
  if (MovesMore(kernel)) return nullptr;
  const auto found = exact_.find(ExactText(KeyOf(kernel), gpu));
  if (found == exact_.end()) return nullptr;
  return &groups_[found->second.group].kernels[found->second.kernel];
}

const MeasuredGroup* RecordSet::FindGroup(const KernelSpec& kernel, absl::string_view gpu) const {
  const auto found = group_of_.find(GroupText(KeyOf(kernel), gpu));
  return found == group_of_.end() ? nullptr : &groups_[found->second];
}

double RecordSet::SharedSigma(absl::string_view gpu) const {
  const auto found = shared_sigma_.find(gpu);
  return found == shared_sigma_.end() ? kSharedSigma : found->second;
}

}  // namespace plancast
