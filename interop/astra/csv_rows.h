#ifndef PLANCAST_INTEROP_ASTRA_CSV_ROWS_H_
#define PLANCAST_INTEROP_ASTRA_CSV_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plancast {

struct CsvRow {
  int64_t line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
};

// RFC 4180: fields in quotes may hold commas, line breaks and doubled quotes.
// Empty lines are left out. Errors name the line.
absl::StatusOr<std::vector<CsvRow>> ReadCsvRows(absl::string_view csv, absl::string_view what);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_ASTRA_CSV_ROWS_H_
