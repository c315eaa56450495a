#include "compiler/lower/kernels/lower_kernel.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "compiler/body/partition.h"
#include "compiler/lower/kernels/attention_kernel.h"
#include "compiler/lower/kernels/by_document.h"
#include "compiler/lower/kernels/eager.h"
#include "compiler/lower/kernels/host_calls.h"
#include "compiler/lower/kernels/loop_pieces.h"
#include "compiler/lower/kernels/merged_products.h"
#include "compiler/lower/kernels/product_bias.h"
#include "compiler/lower/kernels/sum_fusion.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

GemmPass PassOf(Part part) {
  switch (part) {
    case Part::kBackward:
      return GemmPass::kDgrad;
    case Part::kWeightGrad:
      return GemmPass::kWgrad;
    default:
      return GemmPass::kForward;
  }
}

double ElementsOf(const OpRule& rule, int tensor, const std::vector<int64_t>& extents) {
  double elements = 1;
  for (int f : rule.tensors()[tensor].factors) elements *= static_cast<double>(extents[f]);
  return elements;
}

// Fusions of matrix products that a profile may list: a bias is added and
// summed in the product's epilogue; gradients that a fused weight's product
// reads together (`qkv_linear.packed`) are written side by side by their makers.
constexpr char kBiasEpilogue[] = "bias_epilogue";
constexpr char kPacked[] = ".packed";
// The products of a mixture's experts run as one kernel; else each is launched alone, as
// Transformer Engine's GroupedLinear does.
constexpr char kGroupedProducts[] = "grouped_products";
constexpr int64_t kMostLaunches = 1 << 20;
// Adapters are scaled between their two products: the gradient of their sum goes on as it is.
constexpr char kScaledRanks[] = "lora_scale";
// Its gradients are the ones that the product beside it reads, together or each for itself.
constexpr char kAdapterProduct[] = "lora_b";
// A thread block of a fused kernel keeps the operands and the result of a small product: 48 kB of
// shared memory, what every CUDA device gives without being asked.
constexpr double kSharedBytes = 48 * 1024;
// Images lie in memory as tensor cores read them (NHWC).
constexpr char kChannelsLast[] = "nhwc";

// Collects the work of one launch group.
class KernelWork {
 public:
  KernelWork(const LowerContext& context, const std::string& label, double extra_read_bytes)
      : context_(context), calls_(context.profile->calls) {
    base_.label = label;
    base_.dtype = context.dtype;
    base_.read_bytes = extra_read_bytes;
  }

  void Add(const KernelPart& part) {
    const OpRule& rule = *part.step->rule;
    const OpNode& op = context_.body().ops[part.step->op];
    std::vector<int64_t> extents = LocalExtents(*context_.graph, *context_.mesh, op,
                                                context_.bound->splits[part.step->op], rule);
    if (part.loop != nullptr) {
      int64_t& along = extents[part.loop->factor];
      along = (along + part.loop->pieces - 1) / part.loop->pieces;
    }
    if (part.step->part == Part::kBackward || part.step->part == Part::kWeightGrad) {
      base_.pass = PassOf(part.step->part);
    }
    base_.quantized_operand |= part.quantized;
    if (AddedByProduct(context_, *part.step)) return;
    calls_.Note(part, op.name, ExtraKernelsOf(rule));
    if (!context_.profile->Quantizes(op.name)) base_.dtype = StorageType(context_.dtype);
    if (base_.pass != GemmPass::kForward && absl::StartsWith(rule.name(), kAdapterSum) &&
        Has(kScaledRanks)) {
      return;
    }
    const bool fused = !op.fusion.empty() && Has(op.fusion);
    if (!fused && context_.profile->kernels.eager.count(OwnRule(rule)) > 0) {
      AddEager(part, rule, extents);
      return;
    }
    const OpWork work = WorkOf(part, extents, part.begin, part.end);
    const bool multiplies = !work.contractions.empty();
    const bool attention = multiplies && !rule.fused().empty();
    const bool product = multiplies && !attention && !(fused && StaysOnChip(work));
    if (product && !Has(kBiasEpilogue)) {
      AddSeparately(part, rule, extents);
      return;
    }
    AddBytes(part, rule, work, &base_);
    AddExtraKernels(rule, work, 0);
    if (part.step->part == Part::kForward) AddMetrics(rule, work);
    pointwise_ += work.pointwise_ops;
    base_.random_numbers += work.random_numbers;
    base_.window_points += work.window_points;
    if (product) {
      AddProducts(rule, work, extents);
    } else if (attention) {
      const bool diagonal =
          part.loop == nullptr ? !CutsConditionsOf(part) : part.loop->turns && part.piece == 0;
      base_.dtype = context_.profile->types.attention_dtype.value_or(StorageType(context_.dtype));
      FillAttention(rule, extents, work.contractions[0], diagonal, &base_);
      base_.backward = base_.pass != GemmPass::kForward;
      base_.library = context_.profile->kernels.attention_kernel;
      for (const Contraction& c : work.contractions) base_.flops += c.flops;
      if (!context_.graph->documents.empty()) {
        CutByDocument(*context_.graph, context_.documents, ExtentOf(rule, extents, "w", 0), &base_);
      }
      if (context_.profile->kernels.repeats_kv && RepeatsIn(part)) AddRepeatedKv(rule, extents);
    }
  }

  std::vector<KernelSpec> Finish() && {
    if (base_.family == KernelFamily::kAttention) {
      base_.reread_bytes = base_.row_bytes = 0;
      kernels_.push_back(base_);
    } else if (!products_.empty()) {
      FinishProducts();
    } else if (base_.read_bytes + base_.write_bytes > 0) {
      base_.flops = pointwise_;
      kernels_.push_back(base_);
    }
    kernels_.insert(kernels_.end(), after_.begin(), after_.end());
    calls_.CountIn(&kernels_);
    return std::move(kernels_);
  }

 private:
  // `local`: factor sizes of the largest shard.
  OpWork WorkOf(const KernelPart& part, const std::vector<int64_t>& local, int begin,
                int end) const {
    const OpRule& rule = *part.step->rule;
    const OpPartition& partition = part.step->partition;
    if (part.loop != nullptr) return WorkOfPiece(context_, part, local, begin, end);
    const bool cuts = CutsConditionsOf(part);
    if (partition.statements.empty() && !cuts) return plancast::WorkOf(rule, local, begin, end);
    const OpNode& op = context_.body().ops[part.step->op];
    const FactorSplit split = SplitFor(rule, op, context_.bound->splits[part.step->op]);
    const std::vector<int64_t> extents = FactorExtents(*context_.graph, op, rule);
    if (partition.statements.empty()) {
      return WorkOfBusiest(rule, split, *context_.mesh, extents, begin, end);
    }
    return plancast::WorkOf(rule, {partition, split, *context_.mesh, extents}, begin, end);
  }

  bool CutsConditionsOf(const KernelPart& part) const {
    const OpRule& rule = *part.step->rule;
    const auto anywhere = [](const Statement& statement) { return statement.where.empty(); };
    if (std::all_of(rule.statements().begin(), rule.statements().end(), anywhere)) return false;
    const OpNode& op = context_.body().ops[part.step->op];
    return CutsConditions(rule, SplitFor(rule, op, context_.bound->splits[part.step->op]),
                          *context_.mesh);
  }

  bool Has(const std::string& fusion) const {
    return context_.profile->kernels.fusions.count(fusion) > 0;
  }

  // Whether the products of a batch are so small that a fused kernel makes them between its reads
  // and its writes, which then bound it: tensor cores are idle most of the time.
  bool StaysOnChip(const OpWork& work) const {
    return std::all_of(
        work.contractions.begin(), work.contractions.end(), [&](const Contraction& c) {
          const auto m = static_cast<double>(c.m), n = static_cast<double>(c.n);
          const auto k = static_cast<double>(c.k);
          return (m * k + n * k + m * n) * context_.Bytes(DType::kCompute) <= kSharedBytes;
        });
  }

  // The forward rule that a derived one belongs to.
  static std::string OwnRule(const OpRule& rule) {
    return rule.name().substr(0, rule.name().find('.'));
  }

  // One kernel per arithmetic operation: priced as one with all their traffic.
  void AddEager(const KernelPart& part, const OpRule& rule, const std::vector<int64_t>& extents) {
    const EagerTraffic traffic = EagerTrafficOf(rule, extents, part.begin, part.end,
                                                [&](DType type) { return BytesIn(rule, type); });
    if (traffic.kernels == 0) return;
    base_.read_bytes += traffic.read_bytes;
    base_.write_bytes += traffic.write_bytes;
    const double launches = traffic.kernels * OneByOne(part, rule, extents);
    base_.launches =
        std::max(base_.launches, static_cast<int>(std::min<double>(launches, kMostLaunches)));
    AddExtraKernels(rule, WorkOf(part, extents, part.begin, part.end),
                    LargestResult(rule, extents));
  }

  // The experts of a device have weights of their own: operations on those run for each.
  double OneByOne(const KernelPart& part, const OpRule& rule,
                  const std::vector<int64_t>& extents) const {
    if (Has(kGroupedProducts)) return 1;
    const std::vector<int>& dims = context_.body().ops[part.step->op].factor_dims;
    for (const RuleTensor& tensor : rule.tensors()) {
      if (!tensor.parameter) continue;
      for (int f : tensor.factors) {
        if (context_.graph->dims[dims[f]].name == "experts") return static_cast<double>(extents[f]);
      }
    }
    return 1;
  }

  // Bytes of one element; automatic mixed precision may run the op in fp32.
  double BytesIn(const OpRule& rule, DType type) const {
    const SoftwareProfile::ExtraKernels* const extra = ExtraKernelsOf(rule);
    const bool wide = extra != nullptr && extra->fp32 && type == DType::kCompute;
    return context_.Bytes(wide ? DType::kFp32 : type);
  }

  // Elements, with those that a fused op only passes on.
  static double LargestResult(const OpRule& rule, const std::vector<int64_t>& extents) {
    double largest = 0;
    for (int t : rule.outputs()) largest = std::max(largest, ElementsOf(rule, t, extents));
    return largest;
  }

  // What the framework does beside the op, over the largest of its results.
  void AddExtraKernels(const OpRule& rule, const OpWork& work, double elements) {
    const SoftwareProfile::ExtraKernels* const extra = ExtraKernelsOf(rule);
    if (extra == nullptr) return;
    const bool forward = base_.pass == GemmPass::kForward;
    for (const double written : work.write_elements) elements = std::max(elements, written);
    if (elements == 0) return;
    const double narrow = context_.Bytes(DType::kCompute);
    const bool mixed = extra->fp32 && narrow < ElementBytes(DType::kFp32);
    const int passes = forward ? extra->forward_passes : extra->backward_passes;
    const int casts = !mixed ? 0 : forward ? extra->forward_casts : extra->backward_casts;
    const double bytes =
        elements * (2 * narrow * passes + (narrow + ElementBytes(DType::kFp32)) * casts);
    base_.read_bytes += bytes / 2;
    base_.write_bytes += bytes / 2;
    base_.launches += passes + casts + (forward ? extra->forward_small : extra->backward_small);
  }

  // In a ring that sends copies they are made of a rank's own keys alone: before the first step;
  // backward, their gradients are summed up behind the last.
  bool RepeatsIn(const KernelPart& part) const {
    if (part.loop == nullptr || !IsContextRing(context_, *part.loop)) return true;
    if (!context_.profile->kernels.context_steps.repeats_kv) return true;
    return part.piece == (base_.pass == GemmPass::kForward ? 0 : part.loop->pieces - 1);
  }

  // Keys and values for every query head that reads them; backward, their gradients.
  void AddRepeatedKv(const OpRule& rule, const std::vector<int64_t>& extents) {
    if (base_.heads <= base_.kv_heads) return;
    const double once = static_cast<double>(base_.batch * base_.kv_heads) *
                        static_cast<double>(ExtentOf(rule, extents, "t")) *
                        static_cast<double>(base_.head_dim + base_.head_dim_v) *
                        context_.Bytes(DType::kCompute);
    const double repeated =
        once / static_cast<double>(base_.kv_heads) * static_cast<double>(base_.heads);
    const bool forward = base_.pass == GemmPass::kForward;
    after_.push_back(MemoryKernel(context_, rule.name() + ".repeat_kv", forward ? once : repeated,
                                  forward ? repeated : once));
  }

  // Training metrics over the op's largest operand: a cast to fp32, and a log-softmax that
  // goes over its rows again.
  void AddMetrics(const OpRule& rule, const OpWork& work) {
    const SoftwareProfile::ExtraKernels* const extra = ExtraKernelsOf(rule);
    if (extra == nullptr || extra->metrics == 0 || work.read_elements.empty()) return;
    const size_t operand = std::max_element(work.read_elements.begin(), work.read_elements.end()) -
                           work.read_elements.begin();
    const double narrow = context_.Bytes(DType::kCompute), wide = ElementBytes(DType::kFp32);
    const bool casts = narrow < wide;
    const double elements = work.read_elements[operand] * extra->metrics;
    KernelSpec kernel;
    kernel.label = rule.name() + ".metrics";
    kernel.dtype = base_.dtype;
    kernel.read_bytes = elements * (wide + (casts ? narrow : 0));
    kernel.write_bytes = elements * (wide + (casts ? wide : 0));
    kernel.reread_bytes = elements * wide;
    kernel.row_bytes = work.reread_rows[operand] * wide;
    kernel.launches = extra->metrics * (casts ? 2 : 1);
    after_.push_back(kernel);
  }

  // nullptr: nothing.
  const SoftwareProfile::ExtraKernels* ExtraKernelsOf(const OpRule& rule) const {
    const auto found = context_.profile->kernels.extra.find(OwnRule(rule));
    return found == context_.profile->kernels.extra.end() ? nullptr : &found->second;
  }

  void AddBytes(const KernelPart& part, const OpRule& rule, const OpWork& work,
                KernelSpec* kernel) const {
    const auto bytes_of = [&](int tensor) { return BytesIn(rule, rule.tensors()[tensor].dtype); };
    for (size_t i = 0; i < work.reads.size(); ++i) {
      if (!Moves(part.reads, rule, work.reads[i])) continue;
      const double size = bytes_of(work.reads[i]);
      kernel->read_bytes += work.read_elements[i] * size;
      if (work.reread_rows[i] > 0) {
        kernel->reread_bytes += work.read_elements[i] * size;
        kernel->row_bytes += work.reread_rows[i] * size;
      }
    }
    for (size_t i = 0; i < work.writes.size() && !part.ends_only; ++i) {
      if (!Moves(part.writes, rule, work.writes[i])) continue;
      kernel->write_bytes += work.write_elements[i] * bytes_of(work.writes[i]);
    }
  }
  // Intermediates show up only where a rule is run in pieces: they cross
  // memory. The masks decide for everything else.
  static bool Moves(const std::vector<bool>& mask, const OpRule& rule, int tensor) {
    const bool inner =
        rule.tensors()[tensor].role == RuleTensor::Role::kIntermediate &&
        std::find(rule.saves().begin(), rule.saves().end(), tensor) == rule.saves().end();
    return inner || mask[tensor];
  }

  // Products and what comes after them as kernels of their own.
  void AddSeparately(const KernelPart& part, const OpRule& rule,
                     const std::vector<int64_t>& extents) {
    for (int s = part.begin; s < part.end; ++s) {
      const OpWork work = WorkOf(part, extents, s, s + 1);
      if (!work.contractions.empty()) {
        AddBytes(part, rule, work, &base_);
        AddProducts(rule, work, extents);
        continue;
      }
      const Statement& statement = rule.statements()[s];
      if (IsRenaming(rule, statement) || OnlyAddsProducts(rule, statement)) continue;
      KernelSpec kernel = base_;
      kernel.family = KernelFamily::kMemory;
      kernel.label = rule.name() + ".bias";
      kernel.read_bytes = kernel.write_bytes = 0;
      kernel.reread_bytes = kernel.row_bytes = 0;
      AddBytes(part, rule, work, &kernel);
      kernel.flops = work.pointwise_ops;
      MergeInto(&after_, kernel);
    }
  }

  // One bias kernel for all outputs of a fused weight.
  static void MergeInto(std::vector<KernelSpec>* kernels, const KernelSpec& kernel) {
    for (KernelSpec& k : *kernels) {
      if (k.label != kernel.label) continue;
      k.read_bytes += kernel.read_bytes;
      k.write_bytes += kernel.write_bytes;
      k.reread_bytes += kernel.reread_bytes;
      k.row_bytes = std::max(k.row_bytes, kernel.row_bytes);
      k.flops += kernel.flops;
      return;
    }
    kernels->push_back(kernel);
  }

  // `d_x = d_x_1 + d_x_2`: the products accumulate into one buffer.
  static bool OnlyAddsProducts(const OpRule& rule, const Statement& statement) {
    for (int t : TensorsOf(statement.value)) {
      if (SummedInto(rule, t) != statement.target) return false;
    }
    return statement.value.kind() == ExprKind::kSum;
  }

  void AddProducts(const OpRule& rule, const OpWork& work, const std::vector<int64_t>& extents) {
    const bool separate = context_.profile->kernels.separate_products.count(OwnRule(rule)) > 0;
    for (const Contraction& c : work.contractions) {
      const Statement& statement = rule.statements()[c.statement];
      Product product{c, SummedInto(rule, statement.target), TensorsOf(statement.value),
                      statement.reduced};
      std::sort(product.reduced.begin(), product.reduced.end());
      NoteWindow(statement, extents, &product);
      // What counts the products of a batch counts the weights as well.
      const bool of_weights = base_.pass == GemmPass::kWgrad ||
                              std::any_of(product.operands.begin(), product.operands.end(),
                                          [&](int t) { return rule.tensors()[t].parameter; });
      product.grouped = of_weights && c.batch > 1 && product.window == 0;
      NoteRows(rule, extents, &product);
      if (separate) {
        AddSeparateProduct(rule, statement, extents, product);
        continue;
      }
      MergeProduct(product, base_.pass, &products_);
      if (product.target != statement.target) NoteConcatenation(rule, extents, product);
    }
  }

  // A product of its own. Those that are summed are written one by one; who reads the sum
  // reads all of them.
  void AddSeparateProduct(const OpRule& rule, const Statement& statement,
                          const std::vector<int64_t>& extents, const Product& product) {
    const bool further = std::any_of(products_.begin(), products_.end(),
                                     [&](const Product& p) { return p.target == product.target; });
    products_.push_back(product);
    if (!further || product.target == statement.target) return;
    const double bytes = context_.Bytes(rule.tensors()[statement.target].dtype) *
                         ElementsOf(rule, statement.target, extents);
    MergeInto(&after_, MemoryKernel(context_, rule.name() + ".sum", bytes, 0));
  }

  // Products merged along k read their gradients as one tensor: unless their
  // makers wrote them so, they are copied together first.
  void NoteConcatenation(const OpRule& rule, const std::vector<int64_t>& extents,
                         const Product& product) {
    if (OwnRule(rule) == kAdapterProduct || Has(OwnRule(rule) + kPacked)) return;
    for (int t : product.operands) {
      if (rule.tensors()[t].parameter || rule.tensors()[t].name.rfind("d_", 0) != 0) continue;
      const double bytes = context_.Bytes(rule.tensors()[t].dtype) * ElementsOf(rule, t, extents);
      KernelSpec kernel = base_;
      kernel.family = KernelFamily::kMemory;
      kernel.label = rule.name() + ".concat";
      kernel.read_bytes = kernel.write_bytes = bytes;
      kernel.reread_bytes = kernel.row_bytes = 0;
      kernel.flops = 0;
      MergeInto(&kernels_, kernel);
    }
  }

  void FinishProducts() {
    base_.reread_bytes = base_.row_bytes = 0;
    base_.family = KernelFamily::kGemm;
    base_.accumulate_fp32 =
        base_.pass == GemmPass::kWgrad && SumFusionOf(context_) == SumFusion::kFp32;
    double total_flops = 0;
    for (const Product& p : products_) total_flops += p.size.flops;
    for (const Product& product : products_) {
      const Contraction& c = product.size;
      KernelSpec kernel = base_;
      kernel.batch = c.batch;
      kernel.m = c.m;
      kernel.n = c.n;
      kernel.k = c.k;
      kernel.row_multiple = product.row_multiple;
      kernel.flops = c.flops;
      if (product.grouped && !Has(kGroupedProducts)) {
        kernel.launches = static_cast<int>(std::min<int64_t>(c.batch, kMostLaunches));
      }
      if (product.window > 0) {
        kernel.family = KernelFamily::kConvolution;
        kernel.window = product.window;
        kernel.stride = product.stride;
        kernel.width = product.width;
        kernel.channels_last = Has(kChannelsLast);
      }
      kernel.read_bytes = std::round(base_.read_bytes * c.flops / total_flops);
      kernel.write_bytes = std::round(base_.write_bytes * c.flops / total_flops);
      kernels_.push_back(std::move(kernel));
    }
  }

  const LowerContext& context_;
  KernelSpec base_;
  std::vector<Product> products_;
  std::vector<KernelSpec> kernels_, after_;  // concatenations and products; epilogues
  double pointwise_ = 0;
  HostCalls calls_;
};

}  // namespace

std::vector<KernelSpec> KernelsOf(const LowerContext& context, const std::vector<KernelPart>& parts,
                                  double extra_read_bytes, const std::string& label) {
  KernelWork work(context, label, extra_read_bytes);
  for (const KernelPart& part : parts) work.Add(part);
  return std::move(work).Finish();
}

absl::string_view PartSuffix(Part part) {
  switch (part) {
    case Part::kBackward:
      return ".bwd";
    case Part::kWeightGrad:
      return ".wgrad";
    case Part::kRecompute:
      return ".again";
    default:
      return "";
  }
}

Purpose PurposeOf(Part part) {
  switch (part) {
    case Part::kForward:
      return Purpose::kForward;
    case Part::kRecompute:
      return Purpose::kRecompute;
    default:
      return Purpose::kBackward;
  }
}

KernelSpec MemoryKernel(const LowerContext& context, const std::string& label, double read_bytes,
                        double write_bytes) {
  KernelSpec kernel = CopyKernel(label, read_bytes, write_bytes);
  kernel.dtype = context.dtype;
  return kernel;
}

}  // namespace plancast
