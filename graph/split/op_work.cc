#include <algorithm>
#include <bitset>
#include <vector>

#include "base/int128.h"
#include "graph/rule/linearity.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::vector<IndexSet> FullSets(const std::vector<int64_t>& extents) {
  std::vector<IndexSet> sets;
  sets.reserve(extents.size());
  for (int64_t extent : extents) sets.push_back({{0, extent}});
  return sets;
}

double ElementsOf(const RuleTensor& tensor, const std::vector<IndexSet>& sets) {
  double elements = 1;
  for (int factor : tensor.factors) elements *= static_cast<double>(CountOf(sets[factor]));
  return elements;
}

// Elements of the dims depend on the index of `factor`, itself or through maps.
bool DependsOn(const std::vector<int>& dims, int factor, const std::vector<Condition>& where) {
  for (int dim : dims) {
    if (dim == factor) return true;
    const Condition* map = MapOf(dim, where);
    if (map == nullptr) continue;
    std::vector<int> sources = map->Factors();
    sources.erase(sources.begin());
    if (DependsOn(sources, factor, where)) return true;
  }
  return false;
}

// A walked factor that the target keeps: one of its dims, what a target dim is
// tied to, or a part that its map takes apart.
bool IsKept(const std::vector<int>& target, int factor, const std::vector<Condition>& where) {
  if (Contains(target, factor)) return true;
  return std::any_of(where.begin(), where.end(), [&](const Condition& c) {
    return c.is_map() && Contains(target, c.left) &&
           (c.tied() == factor || (c.is_radix() && c.Mentions(factor)));
  });
}

// The factors of a statement's points, and those that an indicator or an index map fixes:
// these are followed, not walked over.
void SplitFactors(const Statement& s, std::vector<int>* walked, std::vector<int>* looked_up) {
  for (int factor : s.factors) {
    const bool followed = IsLookup(s.value, factor) || MapOf(factor, s.where) != nullptr;
    (followed ? looked_up : walked)->push_back(factor);
  }
  if (walked->empty()) std::swap(*walked, *looked_up);
}

// True and filled if the statement is a matrix multiplication. `walked`: the
// factors of its points.
bool AsContraction(const OpRule& rule, const Statement& s, const std::vector<int>& walked,
                   const std::vector<IndexSet>& sets, Contraction* contraction) {
  if (s.combine != Combine::kSum) return false;
  const std::vector<int> operands = ProductOfTwo(s.value);
  if (operands.empty()) return false;
  const std::vector<int>& a = rule.tensors()[operands[0]].factors;
  const std::vector<int>& b = rule.tensors()[operands[1]].factors;
  const std::vector<int>& target = rule.tensors()[s.target].factors;
  bool has_m = false, has_n = false, has_k = false;
  for (int factor : walked) {
    const int64_t size = CountOf(sets[factor]);
    const bool in_a = DependsOn(a, factor, s.where), in_b = DependsOn(b, factor, s.where);
    if (!IsKept(target, factor, s.where)) {
      contraction->k *= size;
      has_k = has_k || (in_a && in_b);
    } else if (in_a && in_b) {
      contraction->batch *= size;
    } else if (in_a) {
      contraction->m *= size;
      has_m = true;
    } else if (in_b) {
      contraction->n *= size;
      has_n = true;
    }
  }
  return has_m && has_n && has_k;
}

// The sizes that a range of statements works on.
class WorkSizes {
 public:
  virtual ~WorkSizes() = default;
  // Of every factor; may be kept in `scratch`.
  virtual const std::vector<IndexSet>& Indices(int statement,
                                               std::vector<IndexSet>* scratch) const = 0;
  virtual double Elements(int tensor) const = 0;
};

// The same indices for all statements.
class PlainSizes : public WorkSizes {
 public:
  PlainSizes(const OpRule& rule, const std::vector<IndexSet>& sets) : rule_(rule), sets_(sets) {}
  const std::vector<IndexSet>& Indices(int, std::vector<IndexSet>*) const override { return sets_; }
  double Elements(int tensor) const override { return ElementsOf(rule_.tensors()[tensor], sets_); }

 private:
  const OpRule& rule_;
  const std::vector<IndexSet>& sets_;
};

// The parts of one shard of an op with index maps.
class ShardSizes : public WorkSizes {
 public:
  ShardSizes(const OpRule& rule, const OpShard& shard) : rule_(rule), shard_(shard) {}

  // Of every class the factors that the statement's maps join to the owner are
  // cut like it; the others are whole.
  const std::vector<IndexSet>& Indices(int statement,
                                       std::vector<IndexSet>* scratch) const override {
    const Statement& s = rule_.statements()[statement];
    const StatementCut& cut = shard_.partition.statements[statement];
    std::vector<IndexSet>& sets = *scratch;
    sets = Parts(shard_.split.axes, shard_.extents);
    for (size_t f = 0; f < sets.size() && shard_.device < 0; ++f) {
      if (!LooksBack(static_cast<int>(f))) continue;
      sets[f] = {{shard_.extents[f] - CountOf(sets[f]), shard_.extents[f]}};
    }
    for (size_t f = 0; f < sets.size(); ++f) {
      if (shard_.split.axes[f].empty() || JoinsOwner(s, cut, static_cast<int>(f))) continue;
      sets[f] = {{0, shard_.extents[f]}};
    }
    for (size_t f = 0; f < sets.size(); ++f) Widen(s, cut.halos[f], static_cast<int>(f), &sets);
    return sets;
  }

  double Elements(int tensor) const override {
    const Layout& layout = shard_.partition.tensors[tensor];
    std::vector<std::vector<int>> axes;
    std::vector<int64_t> shape;
    for (int f : rule_.tensors()[tensor].factors) {
      shape.push_back(shard_.extents[f]);
      axes.emplace_back();
      for (size_t a = 0; a < layout.placements.size(); ++a) {
        const Placement& p = layout.placements[a];
        if (p.is_shard() && p.dim + 1 == static_cast<int>(shape.size())) {
          axes.back().push_back(static_cast<int>(a));
        }
      }
    }
    double elements = 1;
    const std::vector<IndexSet> parts = Parts(axes, shape);
    for (size_t d = 0; d < parts.size(); ++d) {
      const Halo halo = layout.HaloOf(static_cast<int>(d));
      const int64_t most = shard_.device < 0
                               ? std::min(shape[d], CountOf(parts[d]) + halo.before + halo.after)
                               : CountOf(Widened(parts[d], halo, shape[d]));
      elements *= static_cast<double>(most);
    }
    return elements;
  }

 private:
  std::vector<IndexSet> Parts(const std::vector<std::vector<int>>& axes,
                              const std::vector<int64_t>& extents) const {
    if (shard_.device >= 0) {
      return DeviceIndices({axes, {}}, shard_.mesh, extents, shard_.device);
    }
    std::vector<IndexSet> parts;
    for (size_t f = 0; f < extents.size(); ++f) {
      parts.push_back({{0, CeilDiv(extents[f], shard_.mesh.SizeOf(axes[f]))}});
    }
    return parts;
  }

  // Whether more of what stands before a factor, or one tied to it, is allowed the further on it is
  // (`s` of `w <= s`), so that the last part has most to do.
  bool LooksBack(int factor) const {
    const std::vector<int>& ties = rule_.ties();
    for (const Statement& statement : rule_.statements()) {
      for (const Condition& c : statement.where) {
        if (c.is_map() || c.is_promise()) continue;
        for (const AffineTerm& term : c.terms) {
          if (term.factor >= 0 && term.number > 0 && ties[term.factor] == ties[factor]) return true;
        }
      }
    }
    return false;
  }

  bool JoinsOwner(const Statement& s, const StatementCut& cut, int factor) const {
    std::vector<int> joined = {factor};
    for (size_t next = 0; next < joined.size(); ++next) {
      if (!cut.axes[joined[next]].empty()) return true;
      for (const Condition& c : s.where) {
        if (!c.is_map() || c.tied() < 0) continue;
        if (c.left != joined[next] && c.tied() != joined[next]) continue;
        const int other = c.left == joined[next] ? c.tied() : c.left;
        if (!Contains(joined, other)) joined.push_back(other);
      }
    }
    return false;
  }

  // Where later statements read across the border of the owner's block, the
  // factor that the statement walks along it goes as much further.
  void Widen(const Statement& s, Halo halo, int owner, std::vector<IndexSet>* sets) const {
    int64_t more = int64_t{halo.before} + halo.after;
    if (more == 0) return;
    if (shard_.device >= 0) {
      const int64_t own = CountOf((*sets)[owner]);
      more = CountOf(Widened((*sets)[owner], halo, shard_.extents[owner])) - own;
    }
    int walked = owner;
    if (const Condition* map = MapOf(owner, s.where); map != nullptr && map->tied() >= 0) {
      walked = map->tied();
      more = CeilDiv(more, std::max<int64_t>(1, map->terms[0].number));
    }
    IndexSet& set = (*sets)[walked];
    const int64_t ahead = shard_.device < 0 ? std::min(more, set.front().begin) : 0;
    set.front().begin -= ahead;
    set.back().end += more - ahead;
  }

  const OpRule& rule_;
  const OpShard& shard_;
};

// Whether a statement sums products over windows of two dims and more (`p == stride * i + k -
// pad`), each channel by itself: both operands and the sum run along it.
bool WalksWindows(const OpRule& rule, const Statement& s) {
  const std::vector<int> operands = ProductOfTwo(s.value);
  if (s.combine != Combine::kSum || operands.empty()) return false;
  const std::vector<int>& sum = rule.tensors()[s.target].factors;
  const bool by_channel = std::any_of(sum.begin(), sum.end(), [&](int factor) {
    return Contains(rule.tensors()[operands[0]].factors, factor) &&
           Contains(rule.tensors()[operands[1]].factors, factor);
  });
  if (!by_channel) return false;
  return std::count_if(s.where.begin(), s.where.end(), [](const Condition& c) {
           return c.is_map() && !c.is_radix() && c.Factors().size() > 2;
         }) > 1;
}

// More than a thread block keeps of what it sums up (512 kB of 16 bits): statements
// that use the sum and the elements read those again. Assumed on 2026-11-22, not measured:
// about what registers and shared memory of an SM hold. It separates rows of norms and
// logits (up to 2^18 words) from a channel of a batch norm (millions of points).
constexpr double kKeptElements = 1 << 18;

// Gathers what a range of statements reads from outside.
class Border {
 public:
  // At most `most` elements: a lookup reads the rows it needs. `pass`: how many long
  // sums must be over before, up to 63; `row`: elements of the rows whose short sums must be,
  // or 0.
  void Read(int tensor, double elements, double most, int pass, double row) {
    elements = std::min(most, elements);
    auto it = std::find(reads_.begin(), reads_.end(), tensor);
    if (it == reads_.end()) {
      it = reads_.insert(it, tensor);
      elements_.push_back(0);
      passes_.push_back(0);
      fresh_.push_back(false);
      rows_.push_back(0);
    }
    double& known = elements_[it - reads_.begin()];
    known = std::max(known, elements);
    passes_[it - reads_.begin()] |= uint64_t{1} << std::min(pass, 63);
    if (row == 0) fresh_[it - reads_.begin()] = true;
    rows_[it - reads_.begin()] = std::max(rows_[it - reads_.begin()], row);
  }

  void MoveTo(OpWork* work) {
    for (size_t i = 0; i < reads_.size(); ++i) {
      elements_[i] *= static_cast<double>(std::bitset<64>(passes_[i]).count());
      if (!fresh_[i]) rows_[i] = 0;
    }
    work->reread_rows = std::move(rows_);
    work->reads = std::move(reads_);
    work->read_elements = std::move(elements_);
  }

 private:
  std::vector<int> reads_;
  std::vector<double> elements_;
  std::vector<uint64_t> passes_;  // bit set of the passes that read a tensor
  std::vector<bool> fresh_;       // read before any short sum
  std::vector<double> rows_;      // read after short sums over rows this long
};

}  // namespace

bool IsRenaming(const OpRule& rule, const Statement& s) {
  if (s.combine != Combine::kAssign || s.value.kind() != ExprKind::kElement) return false;
  const RuleTensor& source = rule.tensors()[s.value.tensor()];
  const RuleTensor& target = rule.tensors()[s.target];
  if (source.role != RuleTensor::Role::kInput || source.dtype != target.dtype) return false;
  if (s.where.empty()) return source.factors == target.factors;
  if (!std::all_of(s.where.begin(), s.where.end(),
                   [](const Condition& c) { return c.is_radix(); })) {
    return false;
  }
  // A view: with merged dims taken apart both have the same.
  auto parts = [&](const std::vector<int>& dims) {
    std::vector<int> list;
    for (int dim : dims) {
      const Condition* map = MapOf(dim, s.where);
      std::vector<int> factors = map == nullptr ? std::vector<int>{dim} : map->Factors();
      list.insert(list.end(), factors.begin() + (map == nullptr ? 0 : 1), factors.end());
    }
    return list;
  };
  return parts(source.factors) == parts(target.factors);
}

namespace {

// Elements that are summed into one, and over which factors.
struct Row {
  double elements = 0;
  std::vector<int> factors;

  // Whether they lie next to each other in a tensor of these dims.
  bool IsInnermostOf(const std::vector<int>& dims) const {
    return !factors.empty() && factors.size() <= dims.size() &&
           std::all_of(dims.end() - static_cast<std::ptrdiff_t>(factors.size()), dims.end(),
                       [&](int dim) { return Contains(factors, dim); });
  }
};

OpWork WorkWith(const OpRule& rule, const WorkSizes& sizes, int begin, int end) {
  OpWork work;
  Border border;
  std::vector<bool> written_here(rule.tensors().size());
  std::vector<int> pass_of(rule.tensors().size(), 0);  // of what reads a tensor written here
  std::vector<Row> row_of(rule.tensors().size());      // of short sums that it depends on
  std::vector<IndexSet> scratch;
  std::vector<int> walked, looked_up;
  for (int i = begin; i < end; ++i) {
    const Statement& s = rule.statements()[i];
    if (IsRenaming(rule, s)) continue;
    written_here[s.target] = true;
    const std::vector<IndexSet>& sets = sizes.Indices(i, &scratch);
    // Windows that reach over a border count whole, as kernels run them.
    walked.clear();
    looked_up.clear();
    SplitFactors(s, &walked, &looked_up);
    Contraction contraction;
    contraction.statement = i;
    const bool matmul = AsContraction(rule, s, walked, sets, &contraction);
    std::vector<Condition> where;
    for (const Condition& c : s.where) {
      const std::vector<int> factors = c.Factors();
      const bool inside =
          std::all_of(factors.begin(), factors.end(), [&](int f) { return Contains(walked, f); });
      if (inside) where.push_back(c);
    }
    const double points = CountLatticePoints(walked, where, sets);
    if (s.combine == Combine::kOpaque) {
      // Nothing is known of its arithmetic.
    } else if (matmul) {
      contraction.flops = 2 * points;
      work.contractions.push_back(contraction);
    } else {
      // A multiplication and an addition, or whatever it is as one.
      const bool two = s.combine == Combine::kScan ||
                       (s.combine == Combine::kSum && !ProductOfTwo(s.value).empty());
      work.pointwise_ops += two ? 2 * points : points;
      if (WalksWindows(rule, s)) work.window_points += points;
      VisitExpr(s.value, [&](const Expr& e) {
        if (e.kind() == ExprKind::kRandom) work.random_numbers += points;
      });
    }
    int pass = 0;
    Row row;
    const std::vector<int> operands = TensorsOf(s.value);
    for (int t : operands) {
      pass = std::max(pass, pass_of[t]);
      if (row_of[t].elements > row.elements) row = row_of[t];
    }
    const bool is_long = s.combine != Combine::kAssign && !matmul &&
                         points > kKeptElements * sizes.Elements(s.target);
    pass_of[s.target] = pass + (is_long ? 1 : 0);
    const bool sums_rows =
        s.combine != Combine::kAssign && !matmul && !is_long && points > sizes.Elements(s.target);
    row_of[s.target] = row;
    if (sums_rows && points > row.elements * sizes.Elements(s.target)) {
      row_of[s.target] = {points / sizes.Elements(s.target), s.reduced};
    }
    for (int t : operands) {
      if (written_here[t]) continue;
      const std::vector<int>& dims = rule.tensors()[t].factors;
      double most = sizes.Elements(t);
      if (std::any_of(dims.begin(), dims.end(), [&](int f) { return IsLookup(s.value, f); })) {
        most = points;
      } else if (std::any_of(dims.begin(), dims.end(),
                             [&](int f) { return MapOf(f, s.where) != nullptr; })) {
        most = 1;  // the positions that the maps reach, at most
        for (int f : walked) {
          if (DependsOn(dims, f, s.where)) most *= static_cast<double>(CountOf(sets[f]));
        }
      }
      border.Read(t, sizes.Elements(t), most, pass, row.IsInnermostOf(dims) ? row.elements : 0);
    }
  }
  border.MoveTo(&work);
  std::vector<bool> read_later(rule.tensors().size());
  for (size_t i = end; i < rule.statements().size(); ++i) {
    for (int t : TensorsOf(rule.statements()[i].value)) read_later[t] = true;
  }
  for (size_t t = 0; t < rule.tensors().size(); ++t) {
    const int tensor = static_cast<int>(t);
    if (!written_here[t]) continue;
    const bool needed = rule.tensors()[t].role == RuleTensor::Role::kOutput || read_later[t] ||
                        Contains(rule.saves(), tensor);
    if (!needed) continue;
    work.writes.push_back(tensor);
    work.write_elements.push_back(sizes.Elements(tensor));
  }
  return work;
}

}  // namespace

OpWork WorkOf(const OpRule& rule, const std::vector<IndexSet>& indices, int begin, int end) {
  return WorkWith(rule, PlainSizes(rule, indices), begin, end);
}

OpWork WorkOf(const OpRule& rule, const std::vector<int64_t>& local_extents, int begin, int end) {
  return WorkOf(rule, FullSets(local_extents), begin, end);
}

OpWork WorkOf(const OpRule& rule, const OpShard& shard, int begin, int end) {
  if (!shard.partition.statements.empty()) {
    return WorkWith(rule, ShardSizes(rule, shard), begin, end);
  }
  if (shard.device >= 0) {
    return WorkOf(rule, DeviceIndices(shard.split, shard.mesh, shard.extents, shard.device), begin,
                  end);
  }
  std::vector<int64_t> local = shard.extents;
  for (size_t f = 0; f < local.size(); ++f) {
    local[f] = CeilDiv(local[f], shard.mesh.SizeOf(shard.split.axes[f]));
  }
  return WorkOf(rule, local, begin, end);
}

double DomainPoints(const Statement& statement, const std::vector<int64_t>& extents) {
  return CountLatticePoints(statement.factors, statement.where, FullSets(extents));
}

bool HasContraction(const OpRule& rule) {
  const std::vector<IndexSet> ones(rule.factors().size(), IndexSet{{0, 1}});
  return std::any_of(rule.statements().begin(), rule.statements().end(), [&](const Statement& s) {
    if (IsRenaming(rule, s) || s.combine == Combine::kOpaque) return false;
    std::vector<int> walked, looked_up;
    SplitFactors(s, &walked, &looked_up);
    Contraction contraction;
    return AsContraction(rule, s, walked, ones, &contraction);
  });
}

}  // namespace plancast
