#ifndef PLANCAST_COST_MODELS_RECORDS_SQLITE_H_
#define PLANCAST_COST_MODELS_RECORDS_SQLITE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

// As much of SQLite as the record store needs, with statuses that name the file.

namespace plancast {

class SqliteStatement;

// One connection. Not thread-safe.
class SqliteDatabase {
 public:
  enum class Access { kRead, kWrite, kCreate };  // kCreate: writes, and makes the file if absent

  // Opens a file. Files that are no database are told only when first read.
  // `before_statement` is asked before every statement and may refuse it, for
  // tests of faults.
  static absl::StatusOr<SqliteDatabase> Open(const std::string& path, Access access,
                                             std::function<absl::Status()> before_statement = {});

  // Runs statements that give no rows.
  absl::Status Run(absl::string_view sql) const;
  absl::StatusOr<SqliteStatement> Prepare(absl::string_view sql) const;
  // Rows that the last statement changed, and the id of the last one inserted.
  int64_t changes() const;
  int64_t last_id() const;

 private:
  friend class SqliteStatement;
  struct State;
  explicit SqliteDatabase(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

// A prepared statement. Parameters and columns count from 0.
class SqliteStatement {
 public:
  absl::Status Bind(int parameter, int64_t value);
  absl::Status Bind(int parameter, double value);
  absl::Status Bind(int parameter, absl::string_view value);
  // Whether there is a row, whose texts are UTF-8; false at the end, where the statement
  // is reset.
  absl::StatusOr<bool> Step();
  // Runs a statement that gives no rows, and resets it.
  absl::Status Run();
  int64_t Int(int column) const;
  double Double(int column) const;
  std::string Text(int column) const;

 private:
  friend class SqliteDatabase;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  absl::Status Check(int code) const;
  absl::Status CheckTexts() const;

  std::shared_ptr<SqliteDatabase::State> state_;  // outlives the statement
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  bool begun_ = false;
};

// Statements between Begin and Commit happen together or not at all.
class SqliteTransaction {
 public:
  // Waits for other writers.
  static absl::StatusOr<SqliteTransaction> Begin(const SqliteDatabase& database);
  SqliteTransaction(SqliteTransaction&& other) noexcept;
  SqliteTransaction& operator=(SqliteTransaction&&) = delete;
  ~SqliteTransaction();
  absl::Status Commit();

 private:
  explicit SqliteTransaction(const SqliteDatabase* database) : database_(database) {}

  const SqliteDatabase* database_;  // null once committed
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_RECORDS_SQLITE_H_
