#include <dirent.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "strategy/short_form.h"
#include "tests/testing/status_matchers.h"

// Round trip over every strategy of the published measurements, which are not
// part of the repository: $PLANCAST_SHARED_DATA/truth/*.csv.

namespace plancast {
namespace {

std::vector<std::string> SplitCsvLine(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

std::set<std::string> Strategies(const std::string& folder) {
  std::set<std::string> strategies;
  DIR* dir = opendir(folder.c_str());
  if (dir == nullptr) return strategies;
  while (const dirent* entry = readdir(dir)) {
    if (!absl::EndsWith(entry->d_name, ".csv")) continue;
    std::ifstream file(absl::StrCat(folder, "/", entry->d_name));
    std::string line;
    size_t column = 0;
    bool header = true;
    while (std::getline(file, line)) {
      const std::vector<std::string> cells = SplitCsvLine(line);
      if (header) {
        while (column < cells.size() && cells[column] != "strategy") ++column;
        if (column == cells.size()) break;
        header = false;
      } else if (column < cells.size()) {
        strategies.insert(cells[column]);
      }
    }
  }
  closedir(dir);
  return strategies;
}

TEST(ShortFormSharedDataTest, RoundTripsEveryMeasuredStrategy) {
  const char* shared = std::getenv("PLANCAST_SHARED_DATA");
  if (shared == nullptr || *shared == '\0') {
    GTEST_SKIP() << "PLANCAST_SHARED_DATA does not name the folder of published measurements";
  }
  const std::set<std::string> strategies = Strategies(absl::StrCat(shared, "/truth"));
  ASSERT_GE(strategies.size(), 500u) << shared;
  for (const std::string& text : strategies) {
    SCOPED_TRACE(text);
    ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm(text));
    EXPECT_THAT(ParseShortForm(PrintShortForm(form)), IsOkAndHolds(form));
  }
}

}  // namespace
}  // namespace plancast
