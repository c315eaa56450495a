#include "cost_models/records/sqlite.h"

#include <sqlite3.h>

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/fork_safe_mutex.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace plancast {
namespace {

constexpr int kWaitMilliseconds = 20'000;  // for another process that writes
constexpr int kLongestText = 1 << 20;      // bytes of a value or a row

absl::Status ErrorOf(int code, absl::string_view path, absl::string_view detail) {
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return absl::InvalidArgumentError(absl::StrCat(
          "`", path, "` is no record store: the file is not a database. Give a store ",
          "that `plancast records ingest` or `plancast profile` wrote, or a new name."));
    // Statements are ours: what they miss or cannot take is the file's.
    case SQLITE_ERROR:
    case SQLITE_CORRUPT:
    case SQLITE_CONSTRAINT:
    case SQLITE_FORMAT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
      return absl::InvalidArgumentError(
          absl::StrCat("`", path, "` is damaged: ", detail,
                       ". Take a copy of it, or ingest the measured files into a new store."));
    case SQLITE_CANTOPEN:
      return absl::NotFoundError(
          absl::StrCat("`", path, "` cannot be opened: ", detail,
                       ". Give a file in a folder that exists and can be read."));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::FailedPreconditionError(
          absl::StrCat("`", path, "` cannot be written: ", detail,
                       ". Copy it to a folder of yours and write there."));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::FailedPreconditionError(absl::StrCat(
          "`", path, "` is being written by another process. Try again once it ends."));
    case SQLITE_FULL:
    case SQLITE_IOERR:
      return absl::FailedPreconditionError(absl::StrCat(
          "`", path, "` cannot be read or written: ", detail,
          ". What was committed before is kept; go on with the same command once that is mended."));
    case SQLITE_NOMEM:
      return absl::ResourceExhaustedError(
          absl::StrCat("`", path, "` needs more memory than there is."));
    default:
      return absl::InternalError(absl::StrCat("`", path, "`: ", detail));
  }
}

// The locks that all connections of a process share, be they Python's own: a child of a fork would
// wait for ever for one that another thread held.
constexpr int kSharedLocks[] = {
    SQLITE_MUTEX_STATIC_MAIN, SQLITE_MUTEX_STATIC_OPEN, SQLITE_MUTEX_STATIC_VFS1,
    SQLITE_MUTEX_STATIC_VFS2, SQLITE_MUTEX_STATIC_VFS3, SQLITE_MUTEX_STATIC_PRNG,
    SQLITE_MUTEX_STATIC_LRU,  SQLITE_MUTEX_STATIC_PMEM, SQLITE_MUTEX_STATIC_MEM};

void Leave(absl::Span<const int> locks) {
  for (const int lock : locks) sqlite3_mutex_leave(sqlite3_mutex_alloc(lock));
}

// In an order of our own, so none is waited for while others are held.
void EnterShared() {
  const absl::Span<const int> locks(kSharedLocks);
  for (size_t taken = 0; taken < locks.size();) {
    if (sqlite3_mutex_try(sqlite3_mutex_alloc(locks[taken])) == SQLITE_OK) {
      ++taken;
      continue;
    }
    Leave(locks.first(taken));
    taken = 0;
    std::this_thread::yield();
  }
}

void HoldSharedAtForks() {
  static const bool held = [] {
    sqlite3_initialize();
    HoldAtForks({EnterShared, [] { Leave(kSharedLocks); }});
    return true;
  }();
  (void)held;
}

}  // namespace

struct SqliteDatabase::State {
  std::string path;
  sqlite3* database = nullptr;
  std::function<absl::Status()> before_statement;

  ~State() { sqlite3_close(database); }

  absl::Status Check(int code) const {
    if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return absl::OkStatus();
    return ErrorOf(code, path, sqlite3_errmsg(database));
  }
  absl::Status Before() const { return before_statement ? before_statement() : absl::OkStatus(); }
};

SqliteDatabase::SqliteDatabase(std::shared_ptr<State> state) : state_(std::move(state)) {}

absl::StatusOr<SqliteDatabase> SqliteDatabase::Open(
    const std::string& path, Access access, std::function<absl::Status()> before_statement) {
  HoldSharedAtForks();
  auto state = std::make_shared<State>();
  state->path = path;
  state->before_statement = std::move(before_statement);
  int flags = access == Access::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (access == Access::kCreate) flags |= SQLITE_OPEN_CREATE;
  const int code =
      sqlite3_open_v2(path.c_str(), &state->database, flags | SQLITE_OPEN_FULLMUTEX, nullptr);
  RETURN_IF_ERROR(state->Check(code));
  sqlite3_extended_result_codes(state->database, 1);
  sqlite3_busy_timeout(state->database, kWaitMilliseconds);
  sqlite3_limit(state->database, SQLITE_LIMIT_LENGTH, kLongestText);
  return SqliteDatabase(std::move(state));
}

absl::Status SqliteDatabase::Run(absl::string_view sql) const {
  RETURN_IF_ERROR(state_->Before());
  return state_->Check(
      sqlite3_exec(state_->database, std::string(sql).c_str(), nullptr, nullptr, nullptr));
}

absl::StatusOr<SqliteStatement> SqliteDatabase::Prepare(absl::string_view sql) const {
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v2(state_->database, sql.data(), static_cast<int>(sql.size()),
                                      &prepared, nullptr);
  SqliteStatement statement;
  statement.state_ = state_;
  statement.statement_.reset(prepared);
  RETURN_IF_ERROR(state_->Check(code));
  return statement;
}

int64_t SqliteDatabase::changes() const { return sqlite3_changes(state_->database); }
int64_t SqliteDatabase::last_id() const { return sqlite3_last_insert_rowid(state_->database); }

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

absl::Status SqliteStatement::Check(int code) const { return state_->Check(code); }

absl::Status SqliteStatement::Bind(int parameter, int64_t value) {
  return Check(sqlite3_bind_int64(statement_.get(), parameter + 1, value));
}

absl::Status SqliteStatement::Bind(int parameter, double value) {
  return Check(sqlite3_bind_double(statement_.get(), parameter + 1, value));
}

absl::Status SqliteStatement::Bind(int parameter, absl::string_view value) {
  return Check(sqlite3_bind_text(statement_.get(), parameter + 1, value.data(),
                                 static_cast<int>(value.size()), SQLITE_TRANSIENT));
}

absl::StatusOr<bool> SqliteStatement::Step() {
  if (!begun_) {
    RETURN_IF_ERROR(state_->Before());
  }
  begun_ = true;
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) {
    RETURN_IF_ERROR(CheckTexts());
    return true;
  }
  const absl::Status status = Check(code);
  sqlite3_reset(statement_.get());
  begun_ = false;
  RETURN_IF_ERROR(status);
  return false;
}

// What other programs wrote, or a bad disk, need not be text.
absl::Status SqliteStatement::CheckTexts() const {
  for (int column = 0; column < sqlite3_column_count(statement_.get()); ++column) {
    const int type = sqlite3_column_type(statement_.get(), column);
    if (type != SQLITE_TEXT && type != SQLITE_BLOB) continue;
    if (!IsUtf8(Text(column))) {
      return ErrorOf(SQLITE_CORRUPT, state_->path, "one of its texts is not UTF-8");
    }
  }
  return absl::OkStatus();
}

absl::Status SqliteStatement::Run() {
  bool row = true;
  while (row) {
    ASSIGN_OR_RETURN(row, Step());
  }
  return absl::OkStatus();
}

int64_t SqliteStatement::Int(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double SqliteStatement::Double(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string SqliteStatement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return text == nullptr ? "" : std::string(text, sqlite3_column_bytes(statement_.get(), column));
}

absl::StatusOr<SqliteTransaction> SqliteTransaction::Begin(const SqliteDatabase& database) {
  RETURN_IF_ERROR(database.Run("BEGIN IMMEDIATE"));
  return SqliteTransaction(&database);
}

SqliteTransaction::SqliteTransaction(SqliteTransaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

SqliteTransaction::~SqliteTransaction() {
  // Where this fails the journal undoes it when the file is next opened.
  if (database_ != nullptr) database_->Run("ROLLBACK").IgnoreError();
}

absl::Status SqliteTransaction::Commit() {
  RETURN_IF_ERROR(database_->Run("COMMIT"));
  database_ = nullptr;
  return absl::OkStatus();
}

}  // namespace plancast
