#include "cost_models/records/sqlite.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

std::string Fresh(const std::string& name) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::remove(path.c_str());
  return path;
}

absl::StatusOr<int64_t> Rows(const SqliteDatabase& database) {
  ASSIGN_OR_RETURN(SqliteStatement count, database.Prepare("SELECT count(*) FROM t"));
  RETURN_IF_ERROR(count.Step().status());
  return count.Int(0);
}

TEST(SqliteTest, BoundValuesComeBackAsTheyWere) {
  ASSERT_OK_AND_ASSIGN(SqliteDatabase database,
                       SqliteDatabase::Open(Fresh("values.db"), SqliteDatabase::Access::kCreate));
  ASSERT_OK(database.Run("CREATE TABLE t(i INTEGER, d REAL, s TEXT)"));
  ASSERT_OK_AND_ASSIGN(SqliteStatement insert, database.Prepare("INSERT INTO t VALUES(?, ?, ?)"));
  const std::string text("a\0b'; DROP TABLE t", 18);
  ASSERT_OK(insert.Bind(0, int64_t{1} << 60));
  ASSERT_OK(insert.Bind(1, 0.1 + 0.2));
  ASSERT_OK(insert.Bind(2, absl::string_view(text)));
  ASSERT_OK(insert.Run());
  EXPECT_EQ(database.changes(), 1);
  EXPECT_EQ(database.last_id(), 1);
  ASSERT_OK_AND_ASSIGN(SqliteStatement select, database.Prepare("SELECT i, d, s FROM t"));
  ASSERT_THAT(select.Step(), IsOkAndHolds(true));
  EXPECT_EQ(select.Int(0), int64_t{1} << 60);
  EXPECT_EQ(select.Double(1), 0.1 + 0.2);
  EXPECT_EQ(select.Text(2), text);
  EXPECT_THAT(select.Step(), IsOkAndHolds(false));
}

TEST(SqliteTest, ATransactionThatIsNotCommittedLeavesNoTrace) {
  ASSERT_OK_AND_ASSIGN(SqliteDatabase database,
                       SqliteDatabase::Open(Fresh("undo.db"), SqliteDatabase::Access::kCreate));
  ASSERT_OK(database.Run("CREATE TABLE t(i INTEGER)"));
  {
    ASSERT_OK_AND_ASSIGN(SqliteTransaction transaction, SqliteTransaction::Begin(database));
    ASSERT_OK(database.Run("INSERT INTO t VALUES(1)"));
    EXPECT_THAT(Rows(database), IsOkAndHolds(1));
  }
  EXPECT_THAT(Rows(database), IsOkAndHolds(0));
  ASSERT_OK_AND_ASSIGN(SqliteTransaction transaction, SqliteTransaction::Begin(database));
  ASSERT_OK(database.Run("INSERT INTO t VALUES(1)"));
  ASSERT_OK(transaction.Commit());
  EXPECT_THAT(Rows(database), IsOkAndHolds(1));
}

TEST(SqliteTest, AFaultBeforeAStatementIsItsStatus) {
  bool broken = false;
  ASSERT_OK_AND_ASSIGN(
      SqliteDatabase database,
      SqliteDatabase::Open(Fresh("fault.db"), SqliteDatabase::Access::kCreate, [&] {
        return broken ? absl::FailedPreconditionError("the disk is full") : absl::OkStatus();
      }));
  ASSERT_OK(database.Run("CREATE TABLE t(i INTEGER)"));
  broken = true;
  EXPECT_THAT(database.Run("INSERT INTO t VALUES(1)"),
              StatusIs(absl::StatusCode::kFailedPrecondition, "the disk is full"));
  broken = false;
  EXPECT_THAT(Rows(database), IsOkAndHolds(0));
}

TEST(SqliteTest, AFolderThatIsNotThereIsNamed) {
  EXPECT_THAT(SqliteDatabase::Open("/nowhere/at/all.db", SqliteDatabase::Access::kCreate).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("`/nowhere/at/all.db`")));
}

// Its locks are the process's, whoever took them: of Python's own connections, say.
TEST(SqliteTest, AChildNeverWaitsForAThreadOfItsParent) {
  const std::string path = Fresh("shared.db");
  const auto open = [&] { return SqliteDatabase::Open(path, SqliteDatabase::Access::kRead); };
  {
    ASSERT_OK_AND_ASSIGN(const SqliteDatabase made,
                         SqliteDatabase::Open(path, SqliteDatabase::Access::kCreate));
    ASSERT_OK(made.Run("CREATE TABLE t(i INTEGER)"));
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop) open().status().IgnoreError();
    });
  }
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(60);  // it would wait for ever
      const absl::StatusOr<SqliteDatabase> database = open();
      _exit(database.ok() && Rows(*database).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace plancast
