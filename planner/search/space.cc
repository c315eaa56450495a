#include "planner/search/space.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "strategy/context_parallel.h"
#include "strategy/plan_names.h"

namespace plancast {
namespace {

constexpr int64_t kMostPlans = 1'000'000;
// A step of the largest known runs has some 100 million tokens.
constexpr int64_t kMostTokens = int64_t{1} << 30;

template <typename Value>
std::vector<Value> Kept(std::vector<Value> values, const std::set<Value>& allowed) {
  if (allowed.empty()) return values;
  values.erase(std::remove_if(values.begin(), values.end(),
                              [&](const Value& value) { return allowed.count(value) == 0; }),
               values.end());
  return values;
}

std::vector<int64_t> Divisors(int64_t number) {
  std::vector<int64_t> low, high;
  for (int64_t i = 1; i * i <= number; ++i) {
    if (number % i != 0) continue;
    low.push_back(i);
    if (i * i != number) high.push_back(number / i);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

// The members of `set` among `natural`, and those that were said one by one.
std::vector<int64_t> Candidates(const NumberSet& set, const std::vector<int64_t>& natural) {
  std::set<int64_t> out;
  for (int64_t value : natural) {
    if (set.Contains(value)) out.insert(value);
  }
  for (int64_t value : set.Singles()) out.insert(value);
  return {out.begin(), out.end()};
}

// Embedding, head and a module of multi-token prediction: what some virtual stages have in place of
// a layer.
constexpr int64_t kBesideLayers = 3;

// Chunks per stage that leave every virtual stage with the same layers, or as many of them with one
// less as there are modules beside the layers.
std::vector<int64_t> EvenChunks(int64_t layers, int64_t pp) {
  std::vector<int64_t> out = {1};
  for (int64_t vpp = 2; pp > 1 && pp * vpp <= layers; ++vpp) {
    const int64_t chunks = pp * vpp, most = (layers + chunks - 1) / chunks;
    if (most * chunks - layers <= kBesideLayers) out.push_back(vpp);
  }
  return out;
}

// The other keys' alternatives, multiplied out; each entry is their text.
std::vector<std::string> OtherTexts(const SearchSpace& space) {
  std::vector<std::string> texts = {""};
  for (const auto& [key, values] : space.others) {
    std::vector<std::string> longer;
    for (const std::string& text : texts) {
      for (const std::string& value : values) {
        // `none` of a key that knows no such word: it is not said.
        longer.push_back(IsUnsaid(key, value) ? text : absl::StrCat(text, ",", key, "=", value));
      }
    }
    texts = std::move(longer);
  }
  return texts;
}

// Batches are counted in samples; whoever counts tokens gets searches without end.
absl::Status CheckTokens(int64_t batch, int64_t seq) {
  if (seq <= 1 || batch <= kMostTokens / seq) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a batch of ", batch, " sequences of ", seq,
                   " tokens is more in a step than any training run has (at most ", kMostTokens,
                   " tokens are searched). A batch counts sequences: if ", batch,
                   " tokens were meant, it is ", std::max<int64_t>(1, batch / seq), "."));
}

class Enumerator {
 public:
  Enumerator(const SearchSpace& space, const PlanContext& context, const SearchBounds& bounds)
      : space_(space),
        context_(context),
        bounds_(bounds),
        batch_(*context.global_batch),
        recomputes_(RecomputesOf(space, bounds)),
        zeros_(ZerosOf(space, bounds)),
        sps_(SpsOf(space, bounds)),
        other_texts_(OtherTexts(space)) {}

  absl::StatusOr<Enumeration> Run() {
    const std::vector<int64_t> divisors = Divisors(context_.devices);
    const NumberSet all{true, {}};
    RETURN_IF_ERROR(CheckDivides("tp", space_.tp, divisors));
    RETURN_IF_ERROR(CheckDivides("pp", space_.pp, divisors));
    RETURN_IF_ERROR(CheckDivides("dp", space_.dp, divisors));
    for (int64_t tp : Candidates(space_.tp.value_or(all), divisors)) {
      for (int64_t pp : Candidates(space_.pp.value_or(all), divisors)) {
        if (context_.devices % (tp * pp) != 0) {
          // Two divisors that do not go together are no plan; a number the
          // user wrote deserves an answer.
          if (context_.devices % tp != 0 || context_.devices % pp != 0) {
            Exclude(absl::StrCat("tp*pp does not divide the ", context_.devices, " GPUs"));
          }
          continue;
        }
        const int64_t ranks = context_.devices / (tp * pp);
        for (int64_t cp : Candidates(CpsOf(tp), Divisors(ranks))) {
          if (ranks % cp == 0) {
            RETURN_IF_ERROR(Grid(tp, pp, cp));
          } else if (context_.devices % cp != 0) {
            Exclude(absl::StrCat("tp*pp*cp does not divide the ", context_.devices, " GPUs"));
          }
        }
      }
    }
    return std::move(result_);
  }

 private:
  // A key of which no value goes with the machine leaves no plan at all.
  absl::Status CheckDivides(absl::string_view key, const std::optional<NumberSet>& set,
                            const std::vector<int64_t>& divisors) const {
    const auto said = [&](int64_t divisor) { return set->Contains(divisor); };
    if (!set || std::any_of(divisors.begin(), divisors.end(), said)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("space: `", key, "=", set->DebugString(), "` does not divide the ",
                     context_.devices, " GPUs of the machine. Write `", key, "=",
                     absl::StrJoin(divisors, "|"), "`, some of them, or take more hosts."));
  }

  NumberSet CpsOf(int64_t tp) const {
    if (space_.cp) return *space_.cp;
    if (context_.seq >= kLongSequence && bounds_.limits.cp) return NumberSet{true, {}};
    const bool cuts = CutsSamples(space_, bounds_, context_.experts > 0) && context_.heads > 0;
    return cuts && tp == bounds_.most_tp() ? CutsOfSamples() : NumberSet{false, {{1, 1}}};
  }

  // A sample is cut further than tp cuts it where there is only one in a micro-batch.
  bool IsCut(int64_t cp, int64_t mb) const {
    return space_.cp || context_.seq >= kLongSequence || cp == 1 || mb == 1;
  }

  absl::Status Grid(int64_t tp, int64_t pp, int64_t cp) {
    const int64_t dp = context_.devices / (tp * pp * cp);
    if (space_.dp && !space_.dp->Contains(dp)) return absl::OkStatus();
    const std::string reason = GridReason(tp, pp, dp);
    std::vector<int64_t> chunks = EvenChunks(context_.layers, pp);
    if (space_.vpp && !space_.vpp->any) {
      std::vector<int64_t> natural;
      for (int64_t v = 1; v <= std::max<int64_t>(1, context_.layers / pp); ++v)
        natural.push_back(v);
      chunks = pp == 1 ? std::vector<int64_t>{1} : Candidates(*space_.vpp, natural);
    }
    NumberSet few{false, {{1, 1}, {2, 2}, {4, 4}, {8, 8}}};
    const std::vector<int64_t> sizes = Candidates(space_.mb.value_or(few), Divisors(batch_));
    for (int64_t vpp : chunks) {
      for (int64_t mb : sizes) {
        if (IsCut(cp, mb)) {
          RETURN_IF_ERROR(Leaves(tp, pp, cp, dp, vpp, mb, reason));
        }
      }
    }
    return absl::OkStatus();
  }

  // Why no plan with these sizes can run; empty if one may.
  std::string GridReason(int64_t tp, int64_t pp, int64_t dp) const {
    if (!space_.tp && tp > bounds_.gpus_per_domain) {
      return absl::StrCat("tp larger than what the GPUs' own links join (", bounds_.gpus_per_domain,
                          " GPUs)");
    }
    if (!space_.tp && tp > bounds_.most_tp()) {
      return absl::StrCat("tp larger than ", bounds_.most_tp(), " (the space tp=1..",
                          bounds_.gpus_per_domain, " tries it)");
    }
    if (context_.heads > 0 && context_.heads % tp != 0) {
      return absl::StrCat("tp does not divide the ", context_.heads, " heads");
    }
    if (context_.kv_heads > 0 && context_.kv_heads % tp != 0 && tp % context_.kv_heads != 0) {
      return absl::StrCat("tp neither divides the ", context_.kv_heads,
                          " key-value heads nor is a multiple of them");
    }
    if (context_.layers > 0 && pp > context_.layers && !CutsModules(pp)) {
      return absl::StrCat("pp*vpp larger than the ", context_.layers, " layers");
    }
    if (batch_ % dp != 0) return absl::StrCat("dp*mb does not divide the batch of ", batch_);
    return "";
  }

  // Whether the space names a number of stages for which modules that are no layers are cut.
  bool CutsModules(int64_t pp) const {
    if (context_.lists || context_.cut == nullptr || !space_.pp) return false;
    const std::vector<int64_t> said = space_.pp->Singles();
    return std::find(said.begin(), said.end(), pp) != said.end();
  }

  absl::Status Leaves(int64_t tp, int64_t pp, int64_t cp, int64_t dp, int64_t vpp, int64_t mb,
                      std::string reason) {
    const bool cuts = vpp == 1 && CutsModules(pp);
    if (reason.empty() && context_.layers > 0 && pp * vpp > context_.layers && !cuts) {
      reason = absl::StrCat("pp*vpp larger than the ", context_.layers, " layers");
    }
    if (reason.empty() && batch_ / dp % mb != 0) {
      reason = absl::StrCat("dp*mb does not divide the batch of ", batch_);
    }
    const std::vector<int64_t> zeros = dp * cp == 1 ? std::vector<int64_t>{0} : zeros_;
    const std::vector<bool> sps = tp == 1 ? std::vector<bool>{false} : sps_;
    std::vector<std::vector<std::vector<std::string>>> eps(zeros.size());  // and by `sps`
    int64_t ways = 0;
    for (size_t z = 0; z < zeros.size(); ++z) {
      const bool pairs = batch_ / (dp * mb) > 1 && TriesPairs(zeros[z], pp);
      for (const bool sp : sps) {
        eps[z].push_back(
            ExpertTexts(sp ? tp : 1, tp, dp * cp, pairs, OverlapOf(zeros[z], dp * cp)));
        ways += static_cast<int64_t>(eps[z].back().size());
      }
    }
    const std::vector<std::string> cps = ContextTexts(tp, cp);
    const int64_t per_stage = (context_.layers + pp - 1) / pp;
    const std::vector<std::string> recomputes = RecomputesOn(recomputes_, per_stage, bounds_);
    const std::vector<std::string> placed = Placed(dp, cp, pp, vpp);
    const int64_t leaves = ways * recomputes.size() * cps.size() * placed.size();
    const int64_t in_domain = bounds_.gpus_per_domain / (tp * cp);
    if (!reason.empty()) {
      Exclude(reason, leaves);
      return absl::OkStatus();
    }
    if (static_cast<int64_t>(result_.plans.size()) + leaves > kMostPlans) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the space has more than ", kMostPlans,
          " plans. Narrow it, for instance with --space 'tp=1|2|4|8,pp=1..16,mb=1|2'."));
    }
    for (const std::string& recompute : recomputes) {
      for (size_t z = 0; z < zeros.size(); ++z) {
        for (const std::string& shards : ShardTexts(zeros[z], dp, in_domain)) {
          for (size_t i = 0; i < sps.size(); ++i) {
            const std::string text =
                absl::StrCat("dp=", dp, ",tp=", tp, sps[i] ? ",sp" : "", ",pp=", pp,
                             vpp > 1 ? absl::StrCat(",vpp=", vpp) : "", shards, ",mb=", mb,
                             ",recompute=", recompute);
            for (const std::string& context : cps) {
              RETURN_IF_ERROR(WithExperts(absl::StrCat(text, context), eps[z][i], placed));
            }
          }
        }
      }
    }
    return absl::OkStatus();
  }

  // Over how many ranks of dp what `zero` shards is shared out; `in_domain`: as many have fast
  // links to each other.
  std::vector<std::string> ShardTexts(int64_t zero, int64_t dp, int64_t in_domain) {
    if (zero == 0) return {""};
    const std::string all = absl::StrCat(",zero=", zero);
    std::vector<std::string> texts;
    const auto add = [&](int64_t ranks) { texts.push_back(absl::StrCat(all, ",hsdp=", ranks)); };
    if (!space_.hsdp) {
      texts.push_back(all);
      if (zero == 3 && in_domain > 1 && in_domain < dp && dp % in_domain == 0) add(in_domain);
      return texts;
    }
    for (const int64_t ranks : Candidates(*space_.hsdp, Divisors(dp))) {
      if (ranks == 1 && space_.hsdp->any) continue;
      if (ranks >= dp) {
        if (texts.empty() || texts.back() != all) texts.push_back(all);
      } else if (dp % ranks == 0) {
        add(ranks);
      } else {
        Exclude(absl::StrCat("hsdp=", ranks, " does not divide dp"));
      }
    }
    return texts;
  }

  // Ways in which cp ranks may share a sequence; types that cannot cut this one or its heads are
  // none.
  std::vector<std::string> ContextTexts(int64_t tp, int64_t cp) {
    if (cp == 1) return {""};
    std::vector<std::string> texts;
    for (const std::string& type : CpTypesOf(space_)) {
      const auto said = ContextParallel::Parse(type);
      if (!said.ok()) continue;
      const int64_t heads = said->HeadRanks(cp), pieces = said->mirrored() ? 2 * cp : cp;
      const bool kv_works = context_.kv_heads % (tp * heads) == 0 || heads == 1 ||
                            (tp * heads) % std::max<int64_t>(context_.kv_heads, 1) == 0;
      if (context_.heads > 0 && (context_.heads % (tp * heads) != 0 || !kv_works)) {
        Exclude(absl::StrCat("cp_type=", type, " cuts more heads than there are"));
      } else if (context_.seq % pieces != 0) {
        Exclude(absl::StrCat("cp does not divide the ", context_.seq, " tokens of a sequence"));
      } else {
        texts.push_back(absl::StrCat(",cp=", cp, ",cp_type=", type));
      }
    }
    return texts;
  }

  // Into how many parts experts can be cut: they share the ranks of dp, and with `etp`
  // those of tp as well.
  std::vector<int64_t> ExpertSizes(int64_t tp, int64_t dp) const {
    const bool etp = std::any_of(space_.others.begin(), space_.others.end(),
                                 [](const auto& other) { return other.first == "etp"; });
    std::vector<int64_t> natural = {1};
    if (context_.experts > 0) natural = Divisors(std::gcd(etp ? dp * tp : dp, context_.experts));
    return Candidates(space_.ep.value_or(NumberSet{true, {}}), natural);
  }

  // Whether pairs of passes (overlap=ep) are tried. Beside layers that are sharded one by one they
  // run (Megatron-FSDP), but gain less than stages with chunks, which hold what the device can.
  static bool TriesPairs(int64_t zero, int64_t pp) { return zero <= 1 || (zero == 3 && pp == 1); }

  // What is communicated beside passes in all plans with so many ranks that share parameters.
  std::set<Overlap> OverlapOf(int64_t zero, int64_t ranks) const {
    std::set<Overlap> overlap = bounds_.overlap;
    if (bounds_.limits.data_beside && ranks > 1) {
      overlap.insert(Overlap::kGrad);
      if (zero > 0) overlap.insert(Overlap::kParam);
    }
    return overlap;
  }

  // Each way to cut experts, and with `tries_pairs` also with pairs of passes that hide exchanges.
  // Without experts also with products beside the collectives of tensor parallelism that cut the
  // sequence over `sp` ranks. All with `overlap`, unless the space says what.
  std::vector<std::string> ExpertTexts(int64_t sp, int64_t tp, int64_t dp, bool tries_pairs,
                                       const std::set<Overlap>& overlap) const {
    const bool says_overlap =
        std::any_of(space_.others.begin(), space_.others.end(),
                    [](const auto& other) { return other.first == "overlap"; });
    const bool pairs = bounds_.limits.pairs && tries_pairs && !says_overlap;
    const auto with = [&](Overlap more) {
      std::set<Overlap> all = overlap;
      all.insert(more);
      return absl::StrCat(",overlap=", OverlapText(all));
    };
    const bool own = says_overlap || overlap == bounds_.overlap;
    const std::string same = own ? "" : absl::StrCat(",overlap=", OverlapText(overlap));
    std::vector<std::string> texts;
    for (const int64_t ep : ExpertSizes(tp, dp)) {
      const std::string cut = ep > 1 ? absl::StrCat(",ep=", ep) : "";
      texts.push_back(absl::StrCat(cut, same));
      if (ep > 1 && pairs) texts.push_back(absl::StrCat(cut, with(Overlap::kEp)));
    }
    const bool beside = bounds_.limits.tp_beside && overlap.count(Overlap::kTp) == 0;
    if (beside && sp > 1 && context_.experts == 0 && context_.heads > 0 && !says_overlap) {
      texts.push_back(with(Overlap::kTp));
    }
    return texts;
  }

  // Where layers and axes lie, with the other keys.
  std::vector<std::string> Placed(int64_t dp, int64_t cp, int64_t pp, int64_t vpp) {
    std::vector<std::string> texts;
    const auto [layouts, fresh] = layouts_.try_emplace(pp * vpp);
    if (fresh) layouts->second = LayoutsOn(space_.layouts, pp * vpp, context_);
    for (const std::string& order : OrdersOn(space_.orders, dp, cp, pp)) {
      for (const std::string& layout : layouts->second) {
        for (const std::string& other : other_texts_) {
          texts.push_back(absl::StrCat(layout, order, other));
        }
      }
    }
    return texts;
  }

  absl::Status WithExperts(const std::string& text, const std::vector<std::string>& eps,
                           const std::vector<std::string>& placed) {
    for (const std::string& ep : eps) {
      for (const std::string& others : placed) {
        ASSIGN_OR_RETURN(ShortForm form, ParseShortForm(absl::StrCat(text, ep, others)));
        if (space_.where && !space_.where->Holds(form, context_)) {
          Exclude(absl::StrCat("not where ", space_.where->text()));
          continue;
        }
        const int64_t micro_batches = batch_ / (form.dp.value_or(1) * form.mb.value_or(1));
        const std::string lacks = bounds_.limits.WhyNot(form, bounds_.framework, micro_batches);
        if (!lacks.empty()) {
          Exclude(lacks);
          continue;
        }
        result_.plans.push_back(std::move(form));
      }
    }
    return absl::OkStatus();
  }

  void Exclude(const std::string& reason, int64_t count = 1) { result_.excluded[reason] += count; }

  const SearchSpace& space_;
  const PlanContext& context_;
  const SearchBounds& bounds_;
  const int64_t batch_;
  const std::vector<std::string> recomputes_;
  const std::vector<int64_t> zeros_;  // where dp > 1
  const std::vector<bool> sps_;       // where tp > 1
  const std::vector<std::string> other_texts_;
  std::map<int64_t, std::vector<std::string>> layouts_;  // by virtual stages
  Enumeration result_;
};

}  // namespace

std::vector<std::string> RecomputesOf(const SearchSpace& space, const SearchBounds& bounds) {
  if (!space.recompute.empty()) return space.recompute;
  std::vector<std::string> usual =
      Kept<std::string>({"none", "selective", "full"}, bounds.limits.recompute);
  const auto full = std::find(usual.begin(), usual.end(), "full");
  usual.insert(full, bounds.usual_sets.begin(), bounds.usual_sets.end());
  return usual;
}

std::vector<int64_t> ZerosOf(const SearchSpace& space, const SearchBounds& bounds) {
  return space.zero.empty() ? Kept<int64_t>({0, 1, 2, 3}, bounds.limits.zero) : space.zero;
}

std::vector<bool> SpsOf(const SearchSpace& space, const SearchBounds& bounds) {
  return space.sp.empty() ? std::vector<bool>{bounds.limits.sp.value_or(true)} : space.sp;
}

std::vector<std::string> CpTypesOf(const SearchSpace& space) {
  if (!space.cp_types.empty()) return space.cp_types;
  return {"ring_zigzag", "allgather", "ulysses"};
}

absl::StatusOr<Enumeration> EnumeratePlans(const SearchSpace& space, const PlanContext& context,
                                           const SearchBounds& bounds) {
  if (!context.global_batch) {
    return absl::InvalidArgumentError(
        "plans can be compared only at one global batch, and none is given. Add --batch N "
        "(samples per iteration).");
  }
  if (*context.global_batch < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a global batch of ", *context.global_batch,
                     " samples cannot be trained on. Give a positive number."));
  }
  RETURN_IF_ERROR(CheckTokens(*context.global_batch, context.seq));
  return Enumerator(space, context, bounds).Run();
}

}  // namespace plancast
