#ifndef PLANCAST_COST_MODELS_COEFFICIENTS_COEFFICIENT_FAMILY_H_
#define PLANCAST_COST_MODELS_COEFFICIENTS_COEFFICIENT_FAMILY_H_

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cost_models/kernel_cost.h"

namespace plancast {

// Coefficients and how they are known.
template <typename Coefficients>
struct CoefficientEntry {
  std::string gpu;  // whose rows they were fitted to; empty for medians of several
  std::string vendor;
  std::vector<std::string> same_chip;  // other GPUs that have the chip of this one
  int sms = 0;
  double speed_grade = 0;    // matmul_unit.h
  double power_density = 0;  // matmul_unit.h; 0 if unknown
  Coefficients coefficients;
  Provenance provenance;  // source: `A100-SXM-80GB, gemm.csv (aic bf16), 2026-11-21`
  double factor_sigma = 0, sigma = 0;
  bool own_only = false;  // says nothing about GPUs that are not in same_chip
};

// The coefficients of all measured GPUs for one kernel family and type. A GPU
// is served, in this order, by
// - its own coefficients;
// - those of a GPU with the same silicon (said so, as GB300 by B300; else equal SMs and SM
//   design, as H200 by H100): extrapolated;
// - the medians over GPUs of the same SM design and maker: extrapolated;
// - the medians over all GPUs of the maker with most of them: extrapolated.
template <typename Coefficients>
class CoefficientFamily {
 public:
  using Entry = CoefficientEntry<Coefficients>;

  void Add(Entry entry) { own_.push_back(std::move(entry)); }

  // Prepares the answers for GPUs without coefficients, whose shared error is
  // at least `extrapolated_sigma`. `median(members, everyone, power_density)` gives the
  // field-wise medians over the members' entries, as for a GPU of that power density; what no SM
  // design tells may be of everyone.
  // Units for matrices of different makers are unlike at equal rates (plain ones are alike, 64
  // multipliers of fp32 in an SM), and the maker of a GPU that is asked for is not known here: with
  // `of_one_maker` designs are those of the maker with most of them.
  template <typename Median>
  void Finish(absl::string_view what, double extrapolated_sigma, bool of_one_maker, Median median);

  const Entry* Find(absl::string_view gpu, int sms, double speed_grade) const;

 private:
  static bool SameDesign(double a, double b) {
    // Board variants quote clocks up to 8 % apart.
    return a > 0 && b > 0 && std::abs(std::log(a / b)) < 0.1;
  }

  std::vector<Entry> own_;
  std::vector<Entry> same_silicon_;  // like own_, told as extrapolated
  std::vector<Entry> same_design_;   // medians around each of own_
  std::vector<Entry> all_;           // one entry, or none if own_ is empty
};

template <typename Coefficients>
template <typename Median>
void CoefficientFamily<Coefficients>::Finish(absl::string_view what, double extrapolated_sigma,
                                             bool of_one_maker, Median median) {
  std::vector<const Entry*> everyone;
  auto medians_of = [&](const std::vector<const Entry*>& members, absl::string_view of) {
    Entry entry;
    std::vector<double> sigmas, densities;
    for (const Entry* member : members) {
      sigmas.push_back(member->sigma);
      densities.push_back(member->power_density);
    }
    std::nth_element(sigmas.begin(), sigmas.begin() + sigmas.size() / 2, sigmas.end());
    std::nth_element(densities.begin(), densities.begin() + densities.size() / 2, densities.end());
    entry.power_density = densities[densities.size() / 2];
    entry.coefficients = median(members, everyone, entry.power_density);
    entry.provenance.knowledge = Knowledge::kExtrapolated;
    entry.provenance.source =
        absl::StrCat(what, ", medians of ", members.size(), members.size() == 1 ? " GPU" : " GPUs",
                     of, members.size() == 1 ? absl::StrCat(" (", members[0]->gpu, ")") : "");
    entry.factor_sigma = extrapolated_sigma;
    entry.sigma = sigmas[sigmas.size() / 2];
    return entry;
  };
  auto of_maker = [&](const std::string& vendor) {
    std::vector<const Entry*> entries;
    for (const Entry& entry : own_) {
      if (entry.vendor == vendor && !entry.own_only) entries.push_back(&entry);
    }
    return entries;
  };
  for (const Entry& entry : own_) {
    std::vector<const Entry*> makers = of_maker(entry.vendor);
    if (makers.size() > everyone.size()) everyone = std::move(makers);
  }
  if (everyone.empty()) return;
  for (const Entry& entry : own_) {
    if (entry.own_only && entry.same_chip.empty()) continue;
    Entry same = entry;
    same.provenance.knowledge = Knowledge::kExtrapolated;
    same.provenance.source =
        absl::StrCat(entry.provenance.source, ", taken over as of the same silicon");
    same.factor_sigma = std::max(entry.factor_sigma, extrapolated_sigma / 2);
    same_silicon_.push_back(std::move(same));
    if (entry.own_only) continue;
    if (of_one_maker && entry.vendor != everyone[0]->vendor) continue;
    std::vector<const Entry*> kin;
    for (const Entry& other : own_) {
      if (other.own_only) continue;
      if (&other == &entry ||
          (other.vendor == entry.vendor && SameDesign(other.speed_grade, entry.speed_grade))) {
        kin.push_back(&other);
      }
    }
    same_design_.push_back(medians_of(kin, " of the same SM design"));
    same_design_.back().speed_grade = entry.speed_grade;
  }
  all_.push_back(medians_of(everyone, ""));
  for (Entry& entry : own_) {
    entry.provenance.source = absl::StrCat(what, ", ", entry.provenance.source);
  }
  for (Entry& entry : same_silicon_) {
    entry.provenance.source = absl::StrCat(what, ", ", entry.provenance.source);
  }
}

template <typename Coefficients>
const CoefficientEntry<Coefficients>* CoefficientFamily<Coefficients>::Find(
    absl::string_view gpu, int sms, double speed_grade) const {
  for (const Entry& entry : own_) {
    if (entry.gpu == gpu) return &entry;
  }
  for (const Entry& entry : same_silicon_) {
    const auto& names = entry.same_chip;
    if (std::find(names.begin(), names.end(), gpu) != names.end()) return &entry;
  }
  for (const Entry& entry : same_silicon_) {
    if (entry.own_only) continue;
    if (entry.sms == sms && SameDesign(entry.speed_grade, speed_grade)) return &entry;
  }
  const Entry* nearest = nullptr;
  double distance = 0;
  for (const Entry& entry : same_design_) {
    if (!SameDesign(entry.speed_grade, speed_grade)) continue;
    double d = std::abs(std::log(entry.speed_grade / speed_grade));
    if (nearest == nullptr || d < distance) {
      nearest = &entry;
      distance = d;
    }
  }
  if (nearest != nullptr) return nearest;
  return all_.empty() ? nullptr : &all_[0];
}

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_COEFFICIENTS_COEFFICIENT_FAMILY_H_
