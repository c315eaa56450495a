#include "proto/text_proto.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/field_errors.h"

namespace plancast {
namespace {

namespace pb = ::google::protobuf;

// Keeps the first error; those after it are mostly its consequences.
class FirstError : public pb::io::ErrorCollector {
 public:
  FirstError(absl::string_view what, const pb::Descriptor& root) : what_(what), root_(root) {}

  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (!text_.empty()) return;
    // The parser counts from 0, editors from 1.
    const std::string place = absl::StrCat("`", what_, ":", line + 1, ":", column + 1, "`");
    absl::string_view rest = message;
    if (absl::ConsumePrefix(&rest, "Message type \"")) {
      const size_t end = rest.find("\" has no field named \"");
      if (end != absl::string_view::npos) {
        const std::string type(rest.substr(0, end));
        rest.remove_prefix(rest.rfind(" \"") + 2);
        absl::ConsumeSuffix(&rest, "\".");
        text_ = UnknownField(place, "", rest, root_.file()->pool()->FindMessageTypeByName(type));
        return;
      }
    }
    text_ = InvalidSyntax(place, "text proto", message);
  }

  const std::string& text() const { return text_; }

 private:
  const absl::string_view what_;
  const pb::Descriptor& root_;
  std::string text_;
};

}  // namespace

absl::Status ParseTextProtoInto(absl::string_view text, absl::string_view what,
                                pb::Message& message) {
  FirstError error(what, *message.GetDescriptor());
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&stream, &message)) return absl::OkStatus();
  return absl::InvalidArgumentError(error.text());
}

std::string ToTextProto(const pb::Message& message) {
  std::string text;
  pb::TextFormat::PrintToString(message, &text);
  return text;
}

}  // namespace plancast
