#include "interop/nccl/xml_document.h"

#include <algorithm>
#include <cstring>
#include <pugixml.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

class Lines {
 public:
  explicit Lines(absl::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') ends_.push_back(i);
    }
  }
  int At(size_t offset) const {
    return static_cast<int>(std::lower_bound(ends_.begin(), ends_.end(), offset) - ends_.begin()) +
           1;
  }

 private:
  std::vector<size_t> ends_;
};

struct Reader {
  absl::string_view what;
  const XmlLimits& limits;
  const Lines& lines;
  int elements = 0;

  absl::Status Convert(const pugi::xml_node& node, int depth, SystemElement& element) {
    element.name = node.name();
    element.line = lines.At(static_cast<size_t>(std::max<ptrdiff_t>(0, node.offset_debug())));
    if (++elements > limits.elements) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", what, "` has more than ", limits.elements, " elements."));
    }
    if (depth > limits.depth) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", what, "`: ", element.Place(), " is below ", limits.depth, " others."));
    }
    for (const pugi::xml_attribute& attribute : node.attributes()) {
      if (static_cast<int>(element.attributes.size()) == limits.attributes) {
        return absl::InvalidArgumentError(absl::StrCat("`", what, "`: ", element.Place(),
                                                       " has more than ", limits.attributes,
                                                       " attributes."));
      }
      if (element.Has(attribute.name())) {
        return absl::InvalidArgumentError(absl::StrCat("`", what, "`: ", element.Place(), " has `",
                                                       attribute.name(), "` twice."));
      }
      element.attributes.emplace_back(attribute.name(), attribute.value());
    }
    for (const pugi::xml_node& child : node.children()) {
      if (child.type() == pugi::node_comment || child.type() == pugi::node_pi) continue;
      if (child.type() != pugi::node_element) {
        return absl::InvalidArgumentError(
            absl::StrCat("`", what, "`: ", element.Place(), " holds text; NCCL writes none."));
      }
      SystemElement converted;
      RETURN_IF_ERROR(Convert(child, depth + 1, converted));
      element.children.push_back(std::move(converted));
    }
    return absl::OkStatus();
  }
};

// pugixml descends without recursion, but a document of brackets alone would make
// as many nodes; count before.
absl::Status CheckShape(absl::string_view text, absl::string_view what, const XmlLimits& limits) {
  if (text.size() > limits.bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", what, "` has ", text.size(), " bytes; such files have at most ", limits.bytes, "."));
  }
  const int64_t brackets = std::count(text.begin(), text.end(), '<');
  if (brackets > int64_t{8} * limits.elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", what, "` has more than ", limits.elements, " elements."));
  }
  return absl::OkStatus();
}

void Escape(absl::string_view text, std::string& out) {
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) < ' ') {
          absl::StrAppend(&out, "&#", static_cast<int>(c), ";");
        } else {
          out += c;
        }
    }
  }
}

void Write(const SystemElement& element, int depth, std::string& out) {
  out.append(2 * depth, ' ');
  absl::StrAppend(&out, "<", element.name);
  for (const auto& [key, value] : element.attributes) {
    absl::StrAppend(&out, " ", key, "=\"");
    Escape(value, out);
    out += '"';
  }
  if (element.children.empty()) {
    out += "/>\n";
    return;
  }
  out += ">\n";
  for (const SystemElement& child : element.children) Write(child, depth + 1, out);
  out.append(2 * depth, ' ');
  absl::StrAppend(&out, "</", element.name, ">\n");
}

}  // namespace

absl::StatusOr<SystemElement> ReadXml(absl::string_view text, absl::string_view what,
                                      absl::string_view root, const XmlLimits& limits) {
  RETURN_IF_ERROR(CheckShape(text, what, limits));
  const Lines lines(text);
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(
      text.data(), text.size(),
      pugi::parse_default & ~pugi::parse_eol & ~pugi::parse_wconv_attribute, pugi::encoding_utf8);
  const size_t offset = static_cast<size_t>(std::max<ptrdiff_t>(0, parsed.offset));
  if (!parsed) {
    return absl::InvalidArgumentError(absl::StrCat("`", what, "` is no XML: line ",
                                                   lines.At(offset), ", byte ", offset, ": ",
                                                   parsed.description(), "."));
  }
  SystemElement element;
  int roots = 0;
  for (const pugi::xml_node& node : document.children()) {
    if (node.type() != pugi::node_element) continue;
    if (++roots > 1 || node.name() != root) {
      return absl::InvalidArgumentError(absl::StrCat("`", what, "`: <", node.name(), "> where a <",
                                                     root,
                                                     "> alone should be; it is not this kind of "
                                                     "NCCL file."));
    }
    Reader reader{what, limits, lines};
    RETURN_IF_ERROR(reader.Convert(node, 1, element));
  }
  if (roots == 0) {
    return absl::InvalidArgumentError(absl::StrCat("`", what, "` has no <", root, ">."));
  }
  return element;
}

std::string WriteXml(const SystemElement& root) {
  std::string out;
  Write(root, 0, out);
  return out;
}

}  // namespace plancast
