#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/suggest.h"
#include "python/plancast/bindings/status.h"
#include "python/plancast/bindings/types.h"
#include "strategy/nodes/homes.h"
#include "strategy/nodes/on.h"
#include "strategy/nodes/rewrite_directive.h"
#include "strategy/recompute/recompute_set.h"
#include "strategy/short_form.h"
#include "strategy/tree_check.h"

namespace py = ::pybind11;

namespace plancast {
namespace {

Directives& NodeOf(PyStrategy& self, const std::string& path) {
  return *ValueOrThrow(self.tree.Node(path));
}

void SetRecompute(PyStrategy& self, const std::string& path, const std::string& mode) {
  ThrowIfError(NodeOf(self, path).SetRecompute(mode));
}

void SetBucket(PyStrategy& self, const std::string& path, int64_t bytes) {
  if (bytes < 1) {
    ThrowStatus(absl::InvalidArgumentError(
        absl::StrCat("a bucket of ", bytes, " bytes holds nothing. Give a positive size.")));
  }
  NodeOf(self, path).bucket_bytes = bytes;
}

void SetUnit(PyStrategy& self, const std::string& path, int64_t layers) {
  if (layers < 1) {
    ThrowStatus(absl::InvalidArgumentError(
        absl::StrCat("a unit of ", layers, " layers holds nothing. Give 1 or more.")));
  }
  NodeOf(self, path).unit_layers = layers;
}

// `max_ongoing`: empty, one number, or one for each stage.
void SetPieces(PyStrategy& self, const std::string& path, int64_t count,
               const std::vector<int64_t>& max_ongoing) {
  const PiecesDirective pieces{count, max_ongoing};
  ThrowIfError(pieces.Check());
  NodeOf(self, path).pieces = pieces;
}

void SetLoop(PyStrategy& self, const std::string& path,
             const std::map<std::string, std::string>& communicate,
             const std::map<std::string, std::vector<std::string>>& rotate,
             const std::map<std::string, int64_t>& pieces) {
  LoopDirective loop{communicate, rotate, pieces};
  ThrowIfError(loop.Settle());
  NodeOf(self, path).loop = loop;
}

void SetComputeAt(PyStrategy& self, const std::string& path, const std::string& op) {
  NodeOf(self, path).compute_at = op;
}

void SetRewrites(PyStrategy& self, const std::string& path, const std::vector<std::string>& said) {
  std::vector<Rewrite> rewrites;
  for (const std::string& text : said) rewrites.push_back(ValueOrThrow(ParseRewrite(text)));
  NodeOf(self, path).rewrites = std::move(rewrites);
}

// `ranks`: by axis, `3` or `1/2`.
void SetOn(PyStrategy& self, const std::string& path,
           const std::map<std::string, std::string>& ranks) {
  for (const auto& [axis, text] : ranks)
    NodeOf(self, path).SetOn(ValueOrThrow(ParseOn(axis, text)));
}

// `homes`: layouts by kind.
void SetHomes(PyStrategy& self, const std::string& path,
              const std::map<std::string, std::string>& homes) {
  Directives& node = NodeOf(self, path);
  HomeDirective said = node.home;
  for (const auto& [name, layout] : homes) {
    const std::optional<HomeKind> kind = kHomeKindNames.Find(name);
    if (!kind.has_value()) {
      ThrowStatus(absl::InvalidArgumentError(
          absl::StrCat("nothing called `", name, "` has a home; there are ",
                       JoinQuoted(kHomeKindNames), ".", DidYouMean(name, kHomeKindNames))));
    }
    said[*kind] = ValueOrThrow(ParseHome(*kind, layout));
  }
  ThrowIfError(said.Check());
  node.home = said;
}

void SetLora(PyStrategy& self, const std::string& path, int64_t rank,
             const std::vector<std::string>& on, double dropout, const std::string& base) {
  LoraDirective lora{rank, on, dropout, base};
  ThrowIfError(lora.Check());
  NodeOf(self, path).lora = std::move(lora);
}

}  // namespace

void BindStrategy(py::module_& m) {
  // (word, description) of the sets of ops that `selective:WORD` recomputes.
  m.def("recompute_sets", [] {
    std::vector<std::pair<std::string, std::string>> sets;
    for (const RecomputeSet& set : RecomputeSets()) sets.emplace_back(set.word, set.description);
    return sets;
  });
  py::class_<PyStrategy>(m, "Strategy")
      .def_static(
          "parse",
          [](const std::string& text) {
            return PyStrategy{StrategyTree::FromShortForm(ValueOrThrow(ParseShortForm(text)))};
          },
          py::arg("text"))
      .def_static(
          "from_json",
          [](const std::string& json, const std::string& what) {
            return PyStrategy{ValueOrThrow(StrategyTree::FromJson(json, what))};
          },
          py::arg("json"), py::arg("what"))
      .def("to_json", [](const PyStrategy& self) { return self.tree.ToJson(); })
      .def("short_form", [](const PyStrategy& self) { return PrintShortForm(self.tree.plan()); })
      .def("check_supported",
           [](const PyStrategy& self) { ThrowIfError(CheckSupported(self.tree.plan())); })
      .def("copy", [](const PyStrategy& self) { return self; })
      .def(
          "split",
          [](PyStrategy& self, const std::string& path, const std::string& axis,
             const std::vector<std::string>& dims) {
            SplitDirective split = ValueOrThrow(SplitDirective::Parse(axis, dims));
            NodeOf(self, path).SetSplit(std::move(split));
          },
          py::arg("path"), py::arg("axis"), py::arg("dims"))
      .def("recompute", &SetRecompute, py::arg("path"), py::arg("mode"))
      .def("on", &SetOn, py::arg("path"), py::arg("ranks"))
      .def("home", &SetHomes, py::arg("path"), py::arg("homes"))
      .def("bucket", &SetBucket, py::arg("path"), py::arg("size"))
      .def("rewrite", &SetRewrites, py::arg("path"), py::arg("rewrites"))
      .def("compute_at", &SetComputeAt, py::arg("path"), py::arg("op"))
      .def("communicate", &SetLoop, py::arg("path"), py::arg("communicate"), py::arg("rotate"),
           py::arg("pieces"))
      .def("micro_batches", &SetPieces, py::arg("path"), py::arg("count"), py::arg("max_ongoing"))
      .def("unit", &SetUnit, py::arg("path"), py::arg("layers"))
      .def(
          "train",
          [](PyStrategy& self, const std::string& path, bool trains) {
            NodeOf(self, path).train = trains;
          },
          py::arg("path"), py::arg("trains"))
      .def("lora", &SetLora, py::arg("path"), py::arg("rank"), py::arg("on"), py::arg("dropout"),
           py::arg("base"))
      .def(
          "load",
          [](PyStrategy& self, const std::string& dim, const std::vector<double>& shares) {
            self.tree.SetLoad(dim, shares);
          },
          py::arg("dim"), py::arg("shares"))
      .def(
          "explain",
          [](const PyStrategy& self, const std::string& path, int64_t layers) {
            return ValueOrThrow(self.tree.Explain(path, layers));
          },
          py::arg("path"), py::arg("layers"));
}

}  // namespace plancast
