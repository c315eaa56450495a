#include <algorithm>
#include <vector>

#include "base/int128.h"
#include "graph/linearity.h"
#include "graph/op_split.h"

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

// Gathers the border of a range of statements.
class Border {
 public:
  Border(const OpRule& rule, const std::vector<IndexSet>& sets, const OpPartition* partition)
      : rule_(rule), sets_(sets), partition_(partition) {}

  // Elements of a tensor with the halos it is held with.
  double Elements(int tensor) const {
    double elements = ElementsOf(rule_.tensors()[tensor], sets_);
    if (partition_ == nullptr || partition_->statements.empty()) return elements;
    const std::vector<int>& dims = rule_.tensors()[tensor].factors;
    for (size_t d = 0; d < dims.size(); ++d) {
      const Halo halo = partition_->tensors[tensor].HaloOf(static_cast<int>(d));
      const double size = static_cast<double>(CountOf(sets_[dims[d]]));
      if (size > 0) elements *= (size + halo.before + halo.after) / size;
    }
    return elements;
  }

  // At most `most` elements: a lookup reads the rows it needs.
  void Read(int tensor, double most) {
    const double elements = std::min(most, Elements(tensor));
    auto it = std::find(reads_.begin(), reads_.end(), tensor);
    if (it == reads_.end()) {
      reads_.push_back(tensor);
      elements_.push_back(elements);
    } else {
      double& known = elements_[it - reads_.begin()];
      known = std::max(known, elements);
    }
  }

  void MoveTo(OpWork* work) {
    work->reads = std::move(reads_);
    work->read_elements = std::move(elements_);
  }

 private:
  const OpRule& rule_;
  const std::vector<IndexSet>& sets_;
  const OpPartition* partition_;
  std::vector<int> reads_;
  std::vector<double> elements_;
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

// What a statement runs over: its own part, and of the class whose owner later
// statements read across the border, as much more.
std::vector<IndexSet> WithHalos(const StatementCut& cut, const Statement& s,
                                std::vector<IndexSet> sets) {
  for (size_t f = 0; f < cut.halos.size(); ++f) {
    int64_t more = int64_t{cut.halos[f].before} + cut.halos[f].after;
    if (more == 0) continue;
    size_t walked = f;
    if (const Condition* map = MapOf(static_cast<int>(f), s.where); map != nullptr) {
      if (map->tied() < 0) continue;
      walked = map->tied();
      more = CeilDiv(more, std::max<int64_t>(1, map->terms[0].number));
    }
    sets[walked].back().end += more;
  }
  return sets;
}

OpWork WorkWith(const OpRule& rule, const std::vector<IndexSet>& given, int begin, int end,
                const OpPartition* partition) {
  OpWork work;
  Border border(rule, given, partition);
  std::vector<bool> written_here(rule.tensors().size());
  for (int i = begin; i < end; ++i) {
    const Statement& s = rule.statements()[i];
    if (IsRenaming(rule, s)) continue;
    written_here[s.target] = true;
    const bool wide = partition != nullptr && !partition->statements.empty();
    const std::vector<IndexSet> widened =
        wide ? WithHalos(partition->statements[i], s, given) : std::vector<IndexSet>();
    const std::vector<IndexSet>& sets = wide ? widened : given;
    // A factor that an indicator or an index map fixes is followed, not walked
    // over. Windows that reach over a border count whole, as kernels run them.
    std::vector<int> walked, looked_up;
    for (int factor : s.factors) {
      const bool followed = IsLookup(s.value, factor) || MapOf(factor, s.where) != nullptr;
      (followed ? looked_up : walked).push_back(factor);
    }
    if (walked.empty()) std::swap(walked, looked_up);
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
    if (matmul) {
      contraction.flops = 2 * points;
      work.contractions.push_back(contraction);
    } else {
      work.pointwise_ops += points;
    }
    for (int t : TensorsOf(s.value)) {
      if (written_here[t]) continue;
      const std::vector<int>& dims = rule.tensors()[t].factors;
      double most = border.Elements(t);
      if (std::any_of(dims.begin(), dims.end(), [&](int f) { return IsLookup(s.value, f); })) {
        most = points;
      } else if (std::any_of(dims.begin(), dims.end(),
                             [&](int f) { return MapOf(f, s.where) != nullptr; })) {
        double reached = 1;  // positions, at most
        for (int f : walked) {
          if (DependsOn(dims, f, s.where)) reached *= static_cast<double>(CountOf(sets[f]));
        }
        most = std::min(most, reached);
      }
      border.Read(t, most);
    }
  }
  border.MoveTo(&work);
  for (size_t t = 0; t < rule.tensors().size(); ++t) {
    const int tensor = static_cast<int>(t);
    if (!written_here[t]) continue;
    bool needed =
        rule.tensors()[t].role == RuleTensor::Role::kOutput || Contains(rule.saves(), tensor);
    for (size_t i = end; i < rule.statements().size() && !needed; ++i) {
      needed = Contains(TensorsOf(rule.statements()[i].value), tensor);
    }
    if (!needed) continue;
    work.writes.push_back(tensor);
    work.write_elements.push_back(ElementsOf(rule.tensors()[t], given));
  }
  return work;
}

}  // namespace

OpWork WorkOf(const OpRule& rule, const std::vector<IndexSet>& indices, int begin, int end) {
  return WorkWith(rule, indices, begin, end, nullptr);
}

OpWork WorkOf(const OpRule& rule, const std::vector<int64_t>& local_extents, int begin, int end,
              const OpPartition* partition) {
  return WorkWith(rule, FullSets(local_extents), begin, end, partition);
}

double DomainPoints(const Statement& statement, const std::vector<int64_t>& extents) {
  return CountLatticePoints(statement.factors, statement.where, FullSets(extents));
}

bool HasContraction(const OpRule& rule) {
  const std::vector<int64_t> ones(rule.factors().size(), 1);
  return !WorkOf(rule, ones, 0, static_cast<int>(rule.statements().size())).contractions.empty();
}

}  // namespace plancast
