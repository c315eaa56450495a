#include "interop/astra/csv_rows.h"

#include "absl/strings/str_cat.h"

namespace plancast {

absl::StatusOr<std::vector<CsvRow>> ReadCsvRows(absl::string_view csv, absl::string_view what) {
  constexpr size_t kMaxBytes = 64 << 20;
  if (csv.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", csv.size(), " bytes; the limit is ", kMaxBytes));
  }
  std::vector<CsvRow> rows;
  CsvRow row{1, {""}};
  int64_t line = 1;
  bool quoted = false;
  const auto end_row = [&] {
    if (row.fields.size() > 1 || !row.fields[0].empty()) rows.push_back(std::move(row));
    row = {line, {""}};
  };
  for (size_t i = 0; i < csv.size(); ++i) {
    const char c = csv[i];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        row.fields.back() += c;
      } else if (i + 1 < csv.size() && csv[i + 1] == '"') {
        row.fields.back() += csv[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"' && row.fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      row.fields.emplace_back();
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      row.fields.back() += c;
    }
  }
  if (quoted) {
    return absl::InvalidArgumentError(absl::StrCat(what, ":", row.line, ": a quote is not closed"));
  }
  end_row();
  return rows;
}

}  // namespace plancast
