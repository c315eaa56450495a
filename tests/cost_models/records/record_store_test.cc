#include "cost_models/records/record_store.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cost_models/records/sqlite.h"
#include "tests/cost_models/records/store_testing.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Access = RecordStore::Access;

TEST(RecordStoreTest, AHitIsTheStoredTimeBitForBit) {
  ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(FreshPath(), Access::kCreate));
  const double awkward = 0.1 + 0.2;
  for (double seconds : {awkward * 1e-5, 1.0, 0x1.fffffffffffffp-20,
                         std::numeric_limits<double>::denorm_min(), 1e-6}) {
    const KernelKey key = SomeKey(static_cast<int64_t>(seconds * 1e9) + 7);
    ASSERT_OK(store->Add(key, SampleOf(seconds)));
    ASSERT_OK_AND_ASSIGN(const std::optional<double> found, store->Query(key));
    EXPECT_EQ(found, seconds);
  }
}

TEST(RecordStoreTest, OfOneKeyTheBestIsTheAnswerAndAllAreKept) {
  ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(FreshPath(), Access::kCreate));
  const KernelKey key = SomeKey(1);
  for (double seconds : {3e-6, 2e-6, 4e-6}) ASSERT_OK(store->Add(key, SampleOf(seconds)));
  EXPECT_THAT(store->Query(key), IsOkAndHolds(std::optional<double>(2e-6)));
  EXPECT_THAT(store->size(), IsOkAndHolds(1));
  ASSERT_OK_AND_ASSIGN(const std::vector<Sample> history, store->History(key));
  ASSERT_EQ(history.size(), 3u);
  EXPECT_EQ(history[0].seconds, 3e-6);
  EXPECT_EQ(history[2].seconds, 4e-6);
  EXPECT_EQ(history[0].source, "test");
  EXPECT_EQ(history[0].timing, "graph");
  EXPECT_EQ(history[0].date, "2026-11-22");
  EXPECT_EQ(history[0].count, 100);
}

TEST(RecordStoreTest, EveryPartOfTheKeyCounts) {
  ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(FreshPath(), Access::kCreate));
  const KernelKey key = SomeKey(1);
  ASSERT_OK(store->Add(key, SampleOf(1e-6)));
  for (std::string KernelKey::*field :
       {&KernelKey::version, &KernelKey::library, &KernelKey::gpu, &KernelKey::layout,
        &KernelKey::dtype, &KernelKey::shape, &KernelKey::op}) {
    KernelKey other = key;
    other.*field += "x";
    EXPECT_THAT(store->Query(other), IsOkAndHolds(std::optional<double>())) << other.DebugString();
    ASSERT_OK_AND_ASSIGN(const std::vector<Sample> history, store->History(other));
    EXPECT_TRUE(history.empty());
  }
}

TEST(RecordStoreTest, SelectsByGpuLibraryAndVersion) {
  ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(FreshPath(), Access::kCreate));
  KernelKey key = SomeKey(1);
  ASSERT_OK(store->Add(key, SampleOf(1e-6)));
  ASSERT_OK(store->Add(key, SampleOf(2e-6)));
  key.version = "13";
  ASSERT_OK(store->Add(key, SampleOf(3e-6)));
  key.gpu = "T4";
  ASSERT_OK(store->Add(key, SampleOf(4e-6)));
  ASSERT_OK_AND_ASSIGN(std::vector<Record> records, store->Select({}));
  EXPECT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].samples.size(), 2u);
  EXPECT_EQ(records[0].seconds(), 1e-6);
  ASSERT_OK_AND_ASSIGN(records, store->Select({"T4", "", ""}));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].key, key);
  ASSERT_OK_AND_ASSIGN(records, store->Select({"", "cublas", "13"}));
  EXPECT_EQ(records.size(), 2u);
  ASSERT_OK_AND_ASSIGN(records, store->Select({"", "cudnn", ""}));
  EXPECT_TRUE(records.empty());
  ASSERT_OK_AND_ASSIGN(const std::vector<RecordSummary> summary, store->Summarise());
  ASSERT_EQ(summary.size(), 2u);
  EXPECT_EQ(summary[0].gpu, "H100-SXM-80GB");
  EXPECT_EQ(summary[0].kernels, 2);
  EXPECT_EQ(summary[0].samples, 3);
}

TEST(RecordStoreTest, AnotherOpenSeesWhatWasWritten) {
  const std::string path = FreshPath();
  const KernelKey key = SomeKey(1);
  {
    ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(path, Access::kCreate));
    ASSERT_OK(store->Add(key, SampleOf(1e-6)));
  }
  ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(path, Access::kRead));
  EXPECT_THAT(store->Query(key), IsOkAndHolds(std::optional<double>(1e-6)));
  EXPECT_THAT(store->Add(key, SampleOf(1e-6)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cannot be written")));
}

TEST(RecordStoreTest, RefusesWhatIsNoMeasurement) {
  ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(FreshPath(), Access::kCreate));
  for (double seconds : {0.0, -1e-6, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(store->Add(SomeKey(1), SampleOf(seconds)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("positive seconds")));
  }
  Sample sample = SampleOf(1e-6);
  sample.seconds_min = 2e-6, sample.seconds_max = 1e-6;
  EXPECT_THAT(store->Add(SomeKey(1), sample),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("range from")));
  sample = SampleOf(1e-6);
  sample.count = 0;
  EXPECT_THAT(store->Add(SomeKey(1), sample),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("measured 0 times")));
  KernelKey key = SomeKey(1);
  key.gpu.clear();
  EXPECT_THAT(store->Add(key, SampleOf(1e-6)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no GPU")));
  EXPECT_THAT(store->size(), IsOkAndHolds(0));
}

TEST(RecordStoreTest, AChildMayGoOnWhileThreadsOfItsParentRead) {
  ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(FreshPath(), Access::kCreate));
  const KernelKey key = SomeKey(1);
  ASSERT_OK(store->Add(key, SampleOf(2e-6)));
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) EXPECT_THAT(store->Query(key), IsOkAndHolds(std::optional<double>(2e-6)));
    });
  }
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);  // it would wait for ever
      const absl::StatusOr<std::optional<double>> found = store->Query(key);
      _exit(found.ok() && *found == 2e-6 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(RecordStoreTest, PathsThatHoldNoStoreAreTold) {
  EXPECT_THAT(RecordStore::Open("", Access::kCreate).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("empty name")));
  EXPECT_THAT(RecordStore::Open("/nowhere/k.db", Access::kRead).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no record store `/nowhere/k.db`")));
  EXPECT_THAT(RecordStore::Open("/nowhere/k.db", Access::kCreate).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("a folder that exists")));
  EXPECT_THAT(RecordStore::Open(::testing::TempDir(), Access::kCreate).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a folder")));
  const std::string path = FreshPath();
  std::ofstream(path) << "gpu,m,n,k\nT4,1,2,3\n";
  for (Access access : {Access::kRead, Access::kCreate}) {
    EXPECT_THAT(RecordStore::Open(path, access).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("`" + path + "`"), HasSubstr("not a database"))));
  }
  std::ofstream(path, std::ios::trunc);
  EXPECT_THAT(RecordStore::Open(path, Access::kRead).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("something else")));
}

TEST(RecordStoreTest, OtherDatabasesAndNewerStoresAreTold) {
  const std::string path = FreshPath();
  {
    ASSERT_OK_AND_ASSIGN(SqliteDatabase other,
                         SqliteDatabase::Open(path, SqliteDatabase::Access::kCreate));
    ASSERT_OK(other.Run("CREATE TABLE recipes(name TEXT)"));
  }
  EXPECT_THAT(RecordStore::Open(path, Access::kCreate).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("something else")));
  const std::string newer = FreshPath();
  ASSERT_OK(RecordStore::Open(newer, Access::kCreate).status());
  {
    ASSERT_OK_AND_ASSIGN(SqliteDatabase database,
                         SqliteDatabase::Open(newer, SqliteDatabase::Access::kWrite));
    ASSERT_OK(database.Run("PRAGMA user_version = 7"));
  }
  EXPECT_THAT(RecordStore::Open(newer, Access::kRead).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("version 7, and this Plancast reads up to 1")));
}

TEST(RecordStoreTest, ADamagedFileIsAnErrorAndNeverACrash) {
  const std::string path = FreshPath();
  {
    ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(path, Access::kCreate));
    for (int64_t i = 1; i <= 300; ++i) ASSERT_OK(store->Add(SomeKey(i), SampleOf(1e-6)));
  }
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  // Pages overwritten one at a time, and files cut short.
  int told = 0;
  for (size_t page = 0; page + 4096 <= whole.size(); page += 4096) {
    for (const std::string& text :
         {whole.substr(0, page) + std::string(4096, '\xa5') + whole.substr(page + 4096),
          whole.substr(0, page + 2048)}) {
      std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
      const auto store = RecordStore::Open(path, Access::kRead);
      const absl::Status status = store.ok() ? (*store)->Select({}).status() : store.status();
      if (status.ok()) continue;  // the page held the ledger alone
      ++told;
      EXPECT_THAT(std::string(status.message()), HasSubstr("`" + path + "`"));
      EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status)) << status;
    }
  }
  EXPECT_GT(told, 10);
}

// As another program, or a bad disk, would leave it.
TEST(RecordStoreTest, ContentsThatNoStoreHasAreAnError) {
  for (const char* const change :
       {"DROP TABLE samples", "DROP TABLE kernels",
        "ALTER TABLE samples RENAME COLUMN seconds TO minutes",
        "UPDATE samples SET source = CAST(x'ff41' AS TEXT)", "UPDATE kernels SET op = x'80'",
        "UPDATE samples SET seconds = -1", "UPDATE samples SET seconds = 9e999",
        "UPDATE samples SET seconds = 'soon'", "UPDATE samples SET seconds_min = -1",
        "UPDATE samples SET count = 0",
        "UPDATE samples SET timing = CAST(zeroblob(2000000) AS TEXT)",
        "ALTER TABLE kernels RENAME TO others; CREATE VIEW kernels AS WITH RECURSIVE n(id) AS "
        "(SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, 'gemm' AS op, '' AS shape, '' AS "
        "dtype, '' AS layout, '' AS gpu, '' AS library, '' AS version FROM n"}) {
    const std::string path = FreshPath();
    {
      ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(path, Access::kCreate));
      ASSERT_OK(store->Add(SomeKey(1), SampleOf(1e-6)));
      ASSERT_OK_AND_ASSIGN(const SqliteDatabase database,
                           SqliteDatabase::Open(path, SqliteDatabase::Access::kWrite));
      // Longer than a store may be read with.
      if (!database.Run(change).ok()) continue;
    }
    const auto store = RecordStore::Open(path, Access::kRead);
    const absl::Status status = store.ok() ? (*store)->Select({}).status() : store.status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr("`" + path + "` is damaged: "),
                                       HasSubstr("ingest the measured files into a new store"))))
        << change;
  }
}

TEST(RecordStoreTest, AReadOnlyStoreInAReadOnlyFolderCanBeRead) {
  const std::string folder = ::testing::TempDir() + "/read_only_folder";
  const std::string path = folder + "/k.db";
  chmod(folder.c_str(), 0700);
  std::remove(path.c_str());
  mkdir(folder.c_str(), 0700);
  {
    ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(path, Access::kCreate));
    ASSERT_OK(store->Add(SomeKey(1), SampleOf(1e-6)));
  }
  chmod(path.c_str(), 0400);
  chmod(folder.c_str(), 0500);
  ASSERT_OK_AND_ASSIGN(auto store, RecordStore::Open(path, Access::kRead));
  EXPECT_THAT(store->Query(SomeKey(1)), IsOkAndHolds(std::optional<double>(1e-6)));
  if (geteuid() != 0) {  // root may write everywhere
    ASSERT_OK_AND_ASSIGN(auto written, RecordStore::Open(path, Access::kCreate));
    EXPECT_THAT(written->Add(SomeKey(2), SampleOf(1e-6)),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cannot be written")));
  }
  chmod(folder.c_str(), 0700);
}

}  // namespace
}  // namespace plancast
