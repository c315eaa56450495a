// LORIEN-1: an interrupted ingest resumes with no loss and no duplicate.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cost_models/records/record_store.h"
#include "tests/cost_models/records/store_testing.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using Access = RecordStore::Access;
constexpr const char* kDigest = "sha256:0123";
constexpr int kBatch = 7;

// A file of rows in which every third shape comes again.
std::vector<Measurement> SomeRows(int count) {
  std::vector<Measurement> rows;
  for (int i = 0; i < count; ++i) {
    const int shape = i % 3 == 2 ? i - 2 : i;
    rows.push_back({i, SomeKey(shape + 1), SampleOf(1e-6 * (1 + i % 11))});
  }
  return rows;
}

// Everything a store holds, as text.
std::string Contents(const RecordStore& store) {
  const auto records = store.Select({});
  if (!records.ok()) return records.status().ToString();
  std::map<std::string, std::string> lines;
  for (const Record& record : *records) {
    std::string& line = lines[record.key.DebugString()];
    for (const Sample& sample : record.samples) absl::StrAppend(&line, " ", sample.seconds);
  }
  std::string text;
  for (const auto& [key, line] : lines) absl::StrAppend(&text, key, ":", line, "\n");
  return text;
}

absl::Status IngestAll(RecordStore& store, absl::Span<const Measurement> rows) {
  for (size_t at = 0; at < rows.size(); at += kBatch) {
    const auto added = store.Ingest(kDigest, rows.subspan(at, kBatch));
    if (!added.ok()) return added.status();
  }
  return absl::OkStatus();
}

std::string Undisturbed(const std::vector<Measurement>& rows) {
  auto store = *RecordStore::Open(FreshPath(), Access::kCreate);
  EXPECT_OK(IngestAll(*store, rows));
  return Contents(*store);
}

TEST(IngestTest, AFileIngestedTwiceAddsNothing) {
  const std::vector<Measurement> rows = SomeRows(40);
  ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(FreshPath(), Access::kCreate));
  EXPECT_THAT(store->Ingest(kDigest, rows), IsOkAndHolds(40));
  EXPECT_THAT(store->Ingest(kDigest, rows), IsOkAndHolds(0));
  EXPECT_EQ(Contents(*store), Undisturbed(rows));
  ASSERT_OK_AND_ASSIGN(const auto done, store->IngestedRows(kDigest));
  EXPECT_EQ(done.size(), 40u);
  // Another file with the same rows is other evidence.
  EXPECT_THAT(store->Ingest("sha256:4567", rows), IsOkAndHolds(40));
}

TEST(IngestTest, ABadRowKeepsItsBatchOut) {
  std::vector<Measurement> rows = SomeRows(5);
  rows[3].sample.seconds = -1;
  ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(FreshPath(), Access::kCreate));
  EXPECT_THAT(store->Ingest(kDigest, rows),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("row 3: kernel")));
  EXPECT_THAT(store->size(), IsOkAndHolds(0));
}

TEST(IngestTest, NotedSourcesAreListedOnce) {
  ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(FreshPath(), Access::kCreate));
  ASSERT_OK(store->NoteSource(kDigest, "gemm.csv", 1234));
  ASSERT_OK(store->NoteSource(kDigest, "gemm.csv", 1234));
  ASSERT_OK_AND_ASSIGN(const auto sources, store->Sources());
  ASSERT_EQ(sources.size(), 1u);
  EXPECT_EQ(sources[0].name, "gemm.csv");
  EXPECT_EQ(sources[0].bytes, 1234);
}

// A fault before each statement in turn, opening included; then once more without.
TEST(IngestTest, AFaultAtAnyStatementLosesAndDoublesNothing) {
  const std::vector<Measurement> rows = SomeRows(20);
  const std::string expected = Undisturbed(rows);
  bool failed = true;
  int faults = 0;
  for (int fatal = 0; failed; ++fatal) {
    const std::string path = FreshPath();
    int statement = 0;
    bool armed = true;
    failed = false;
    {
      auto store = RecordStore::Open(path, Access::kCreate, [&] {
        if (!armed || statement++ != fatal) return absl::OkStatus();
        failed = true;
        return absl::FailedPreconditionError("the disk is full");
      });
      if (store.ok()) {
        const absl::Status status = IngestAll(**store, rows);
        EXPECT_EQ(status.ok(), !failed);
        armed = false;  // the same store goes on
        EXPECT_OK(IngestAll(**store, rows));
        EXPECT_EQ(Contents(**store), expected) << "fault at statement " << fatal;
      }
    }
    ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(path, Access::kCreate));
    EXPECT_OK(IngestAll(*store, rows));
    EXPECT_EQ(Contents(*store), expected) << "fault at statement " << fatal;
    faults += failed;
  }
  EXPECT_GT(faults, 80);
}

// Ingests in a child process and kills it: before statement `fatal`, or (negative)
// after some time. Gives whether it was killed.
bool IngestAndKill(const std::string& path, const std::vector<Measurement>& rows, int fatal,
                   int microseconds) {
  const pid_t child = fork();
  if (child == 0) {
    int statement = 0;
    auto store = RecordStore::Open(path, Access::kCreate, [&] {
      if (statement++ == fatal) kill(getpid(), SIGKILL);
      return absl::OkStatus();
    });
    const bool good = store.ok() && IngestAll(**store, rows).ok();
    _exit(good ? 0 : 1);
  }
  if (fatal < 0) {
    usleep(microseconds);
    kill(child, SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status);
}

TEST(IngestTest, AProcessKilledAtAnyStatementIsResumed) {
  const std::vector<Measurement> rows = SomeRows(15);
  const std::string expected = Undisturbed(rows);
  bool killed = true;
  for (int fatal = 0; killed; ++fatal) {
    const std::string path = FreshPath();
    killed = IngestAndKill(path, rows, fatal, 0);
    ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(path, Access::kCreate));
    EXPECT_OK(IngestAll(*store, rows));
    EXPECT_EQ(Contents(*store), expected) << "killed before statement " << fatal;
  }
}

TEST(IngestTest, AProcessKilledAtRandomIsResumed) {
  const std::vector<Measurement> rows = SomeRows(200);
  const std::string expected = Undisturbed(rows);
  std::mt19937 random(TestSeed(5));
  for (int trial = 0; trial < 10; ++trial) {
    const std::string path = FreshPath();
    // Again and again from where it stopped, as an impatient person would.
    for (int kills = 0; kills < 4; ++kills) {
      IngestAndKill(path, rows, -1, static_cast<int>(random() % 40'000));
    }
    ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(path, Access::kCreate));
    EXPECT_OK(IngestAll(*store, rows));
    EXPECT_EQ(Contents(*store), expected) << "trial " << trial;
  }
}

TEST(IngestTest, TwoProcessesIngestTheSameFileOnce) {
  const std::vector<Measurement> rows = SomeRows(60);
  const std::string path = FreshPath();
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      auto store = RecordStore::Open(path, Access::kCreate);
      _exit(store.ok() && IngestAll(**store, rows).ok() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(path, Access::kRead));
  EXPECT_EQ(Contents(*store), Undisturbed(rows));
}

TEST(IngestTest, ReadersBesideAWriterSeeWholeBatches) {
  const std::vector<Measurement> rows = SomeRows(140);
  const std::string path = FreshPath();
  ASSERT_OK_AND_ASSIGN(auto writer, RecordStore::Open(path, Access::kCreate));
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&, i] {
      // Two connections of their own and one shared with the writer.
      auto own = RecordStore::Open(path, Access::kRead);
      ASSERT_OK(own.status());
      const RecordStore& store = i == 0 ? *writer : **own;
      size_t seen = 0;
      while (seen < rows.size()) {
        const auto done = store.IngestedRows(kDigest);
        ASSERT_OK(done.status());
        EXPECT_GE(done->size(), seen);
        EXPECT_TRUE(done->size() % kBatch == 0) << done->size();
        seen = done->size();
      }
    });
  }
  EXPECT_OK(IngestAll(*writer, rows));
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace plancast
