#include "cost_models/records/record_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

using SqlAccess = SqliteDatabase::Access;

constexpr int64_t kVersion = 1;               // PRAGMA user_version of the schema below
constexpr int64_t kApplication = 0x504C4352;  // PRAGMA application_id: `PLCR`
constexpr const char* kSchema = R"(
  CREATE TABLE kernels(
    id INTEGER PRIMARY KEY, op TEXT NOT NULL, shape TEXT NOT NULL, dtype TEXT NOT NULL,
    layout TEXT NOT NULL, gpu TEXT NOT NULL, library TEXT NOT NULL, version TEXT NOT NULL,
    UNIQUE(gpu, op, shape, dtype, layout, library, version));
  CREATE TABLE samples(
    id INTEGER PRIMARY KEY, kernel INTEGER NOT NULL REFERENCES kernels(id), seconds REAL NOT NULL,
    seconds_min REAL NOT NULL, seconds_max REAL NOT NULL, count INTEGER NOT NULL,
    source TEXT NOT NULL, timing TEXT NOT NULL, date TEXT NOT NULL);
  CREATE INDEX samples_of_kernel ON samples(kernel);
  CREATE TABLE sources(digest TEXT PRIMARY KEY, name TEXT NOT NULL, bytes INTEGER NOT NULL);
  CREATE TABLE ingested(digest TEXT NOT NULL, row INTEGER NOT NULL, sample INTEGER NOT NULL,
    PRIMARY KEY(digest, row)) WITHOUT ROWID;
)";
constexpr const char* kOfKey =
    " WHERE gpu = ? AND op = ? AND shape = ? AND dtype = ? AND layout = ? AND library = ? AND "
    "version = ?";
constexpr const char* kSampleColumns =
    "seconds, seconds_min, seconds_max, count, source, timing, date";

absl::Status BindKey(const KernelKey& key, SqliteStatement* statement) {
  int parameter = 0;
  for (const std::string* field :
       {&key.gpu, &key.op, &key.shape, &key.dtype, &key.layout, &key.library, &key.version}) {
    RETURN_IF_ERROR(statement->Bind(parameter++, absl::string_view(*field)));
  }
  return absl::OkStatus();
}

absl::Status Damaged(absl::string_view path, absl::string_view how) {
  return absl::InvalidArgumentError(
      absl::StrCat("`", path, "` is damaged: ", how,
                   ". Take a copy of it, or ingest the measured files into a new store."));
}

// What is wrong with a sample; empty: nothing.
std::string Fault(const Sample& sample) {
  const auto sensible = [](double value) { return std::isfinite(value) && value >= 0; };
  if (!sensible(sample.seconds) || sample.seconds == 0 || sample.seconds > 1e6) {
    return absl::StrCat("its time is ", sample.seconds, " s");
  }
  const double low = sample.seconds_min, high = sample.seconds_max;
  if (!sensible(low) || !sensible(high) || (high > 0 && high < low)) {
    return absl::StrCat("its times range from ", low, " to ", high, " s");
  }
  if (sample.count < 1) return absl::StrCat("it was measured ", sample.count, " times");
  return "";
}

absl::StatusOr<Sample> SampleFrom(const SqliteStatement& row, int column, absl::string_view path) {
  Sample sample;
  sample.seconds = row.Double(column);
  sample.seconds_min = row.Double(column + 1);
  sample.seconds_max = row.Double(column + 2);
  sample.count = row.Int(column + 3);
  sample.source = row.Text(column + 4);
  sample.timing = row.Text(column + 5);
  sample.date = row.Text(column + 6);
  if (const std::string fault = Fault(sample); !fault.empty()) {
    return Damaged(path, absl::StrCat("of a sample, ", fault));
  }
  return sample;
}

absl::Status Verify(const KernelKey& key, const Sample& sample) {
  RETURN_IF_ERROR(SpecOf(key).status());
  const auto refuse = [&](absl::string_view what, absl::string_view right) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel `", key.DebugString(), "`: ", what, ". ", right));
  };
  if (key.gpu.empty()) {
    return refuse("no GPU is named",
                  "Give the name of a catalogue entry, such as `H100-SXM-80GB`.");
  }
  if (const std::string fault = Fault(sample); !fault.empty()) {
    return refuse(fault,
                  "Times are positive seconds, at most 1e6, the smallest and the largest 0 where "
                  "they are not known; repetitions are positive.");
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Pragma(const SqliteDatabase& database, absl::string_view name) {
  ASSIGN_OR_RETURN(SqliteStatement statement, database.Prepare(absl::StrCat("PRAGMA ", name)));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Int(0) : 0;
}

// Puts samples below their kernels, with statements prepared once.
class Writer {
 public:
  static absl::StatusOr<Writer> Create(const SqliteDatabase& database) {
    ASSIGN_OR_RETURN(
        SqliteStatement kernel,
        database.Prepare("INSERT OR IGNORE INTO kernels(gpu, op, shape, dtype, layout, "
                         "library, version) VALUES(?, ?, ?, ?, ?, ?, ?)"));
    ASSIGN_OR_RETURN(SqliteStatement sample, database.Prepare(absl::StrCat(
                                                 "INSERT INTO samples(", kSampleColumns,
                                                 ", kernel) VALUES(", "?, ?, ?, ?, ?, ?, ?, ?)")));
    ASSIGN_OR_RETURN(SqliteStatement find,
                     database.Prepare(absl::StrCat("SELECT id FROM kernels", kOfKey)));
    return Writer(std::move(kernel), std::move(sample), std::move(find));
  }

  absl::Status Insert(const KernelKey& key, const Sample& sample) {
    RETURN_IF_ERROR(BindKey(key, &kernel_));
    RETURN_IF_ERROR(kernel_.Run());
    RETURN_IF_ERROR(BindKey(key, &find_));
    int64_t id = 0;
    while (true) {
      ASSIGN_OR_RETURN(const bool row, find_.Step());
      if (!row) break;
      id = find_.Int(0);
    }
    int parameter = 0;
    for (double seconds : {sample.seconds, sample.seconds_min, sample.seconds_max}) {
      RETURN_IF_ERROR(sample_.Bind(parameter++, seconds));
    }
    RETURN_IF_ERROR(sample_.Bind(parameter++, sample.count));
    for (const std::string* text : {&sample.source, &sample.timing, &sample.date}) {
      RETURN_IF_ERROR(sample_.Bind(parameter++, absl::string_view(*text)));
    }
    RETURN_IF_ERROR(sample_.Bind(parameter, id));
    return sample_.Run();
  }

 private:
  Writer(SqliteStatement kernel, SqliteStatement sample, SqliteStatement find)
      : kernel_(std::move(kernel)), sample_(std::move(sample)), find_(std::move(find)) {}

  SqliteStatement kernel_, sample_, find_;
};

}  // namespace

double Record::seconds() const {
  double best = samples.empty() ? 0 : samples[0].seconds;
  for (const Sample& sample : samples) best = std::min(best, sample.seconds);
  return best;
}

absl::StatusOr<std::unique_ptr<RecordStore>> RecordStore::Open(
    const std::string& path, Access access, std::function<absl::Status()> before_statement) {
  if (path.empty())
    return absl::InvalidArgumentError("a record store has an empty name; give it one.");
  struct stat info;
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", path, "` is ", S_ISDIR(info.st_mode) ? "a folder" : "no plain file",
                     ". Give the file of a record store, such as `kernels.db`."));
  }
  if (!exists && access == Access::kRead) {
    return absl::NotFoundError(
        absl::StrCat("there is no record store `", path,
                     "`. Make one with `plancast records ingest` or `plancast profile`."));
  }
  SqlAccess how = access == Access::kRead ? SqlAccess::kRead : SqlAccess::kCreate;
  // Somebody else's store can be read.
  if (exists && access == Access::kCreate && ::access(path.c_str(), W_OK) != 0) {
    how = SqlAccess::kRead;
  }
  ASSIGN_OR_RETURN(SqliteDatabase database,
                   SqliteDatabase::Open(path, how, std::move(before_statement)));
  std::unique_ptr<RecordStore> store(new RecordStore(path, std::move(database)));
  RETURN_IF_ERROR(store->PrepareSchema(how == SqlAccess::kRead ? Access::kRead : access));
  return store;
}

absl::Status RecordStore::PrepareSchema(Access access) {
  const auto tables = [this] { return Count("SELECT count(*) FROM sqlite_master"); };
  ASSIGN_OR_RETURN(int64_t found, tables());
  if (found == 0 && access == Access::kCreate) {
    ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(database_));
    ASSIGN_OR_RETURN(found, tables());  // another process may have been faster
    if (found == 0) {
      RETURN_IF_ERROR(database_.Run(kSchema));
      RETURN_IF_ERROR(database_.Run(absl::StrCat("PRAGMA application_id = ", kApplication)));
      RETURN_IF_ERROR(database_.Run(absl::StrCat("PRAGMA user_version = ", kVersion)));
    }
    RETURN_IF_ERROR(transaction.Commit());
  }
  ASSIGN_OR_RETURN(const int64_t application, Pragma(database_, "application_id"));
  ASSIGN_OR_RETURN(const int64_t version, Pragma(database_, "user_version"));
  if (application != kApplication) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`", path_, "` is a database of something else, not a record store. Give a ",
        "store that `plancast records ingest` or `plancast profile` wrote, or a new ", "name."));
  }
  if (version > kVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "`", path_, "` is a record store of version ", version, ", and this Plancast reads up to ",
        kVersion, ". Use the Plancast that wrote it, or a newer one."));
  }
  // A view or a trigger runs what its writer liked, for ever if that is what they liked.
  ASSIGN_OR_RETURN(found, Count("SELECT count(*) FROM sqlite_master WHERE type NOT IN "
                                "('table', 'index')"));
  if (found > 0) return Damaged(path_, "it holds views or triggers, which no store has");
  return absl::OkStatus();
}

absl::StatusOr<int64_t> RecordStore::Count(absl::string_view sql) const {
  ASSIGN_OR_RETURN(SqliteStatement statement, database_.Prepare(sql));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Int(0) : 0;
}

absl::Status RecordStore::Add(const KernelKey& key, const Sample& sample) {
  RETURN_IF_ERROR(Verify(key, sample));
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(database_));
  ASSIGN_OR_RETURN(Writer writer, Writer::Create(database_));
  RETURN_IF_ERROR(writer.Insert(key, sample));
  return transaction.Commit();
}

absl::StatusOr<int64_t> RecordStore::Ingest(absl::string_view digest,
                                            absl::Span<const Measurement> rows) {
  for (const Measurement& row : rows) {
    RETURN_IF_ERROR(Verify(row.key, row.sample)) << "row " << row.row;
  }
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(database_));
  ASSIGN_OR_RETURN(
      SqliteStatement note,
      database_.Prepare("INSERT OR IGNORE INTO ingested(digest, row, sample) "
                        "VALUES(?, ?, (SELECT coalesce(max(id), 0) + 1 FROM samples))"));
  ASSIGN_OR_RETURN(Writer writer, Writer::Create(database_));
  int64_t added = 0;
  for (const Measurement& row : rows) {
    RETURN_IF_ERROR(note.Bind(0, digest));
    RETURN_IF_ERROR(note.Bind(1, row.row));
    RETURN_IF_ERROR(note.Run());
    if (database_.changes() == 0) continue;
    RETURN_IF_ERROR(writer.Insert(row.key, row.sample));
    ++added;
  }
  RETURN_IF_ERROR(transaction.Commit());
  return added;
}

absl::Status RecordStore::NoteSource(absl::string_view digest, absl::string_view name,
                                     int64_t bytes) {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  ASSIGN_OR_RETURN(SqliteStatement statement,
                   database_.Prepare("INSERT OR IGNORE INTO sources(digest, name, bytes) "
                                     "VALUES(?, ?, ?)"));
  RETURN_IF_ERROR(statement.Bind(0, digest));
  RETURN_IF_ERROR(statement.Bind(1, name));
  RETURN_IF_ERROR(statement.Bind(2, bytes));
  return statement.Run();
}

absl::StatusOr<std::vector<RecordStore::Source>> RecordStore::Sources() const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  ASSIGN_OR_RETURN(SqliteStatement statement,
                   database_.Prepare("SELECT digest, name, bytes FROM sources ORDER BY rowid"));
  std::vector<Source> sources;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return sources;
    sources.push_back({statement.Text(0), statement.Text(1), statement.Int(2)});
  }
}

absl::StatusOr<std::set<int64_t>> RecordStore::IngestedRows(absl::string_view digest) const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  ASSIGN_OR_RETURN(SqliteStatement statement,
                   database_.Prepare("SELECT row FROM ingested WHERE digest = ? ORDER BY row"));
  RETURN_IF_ERROR(statement.Bind(0, digest));
  std::set<int64_t> rows;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return rows;
    rows.insert(rows.end(), statement.Int(0));
  }
}

absl::StatusOr<std::vector<Sample>> RecordStore::History(const KernelKey& key) const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  ASSIGN_OR_RETURN(
      SqliteStatement statement,
      database_.Prepare(absl::StrCat("SELECT ", kSampleColumns, " FROM samples WHERE kernel = ",
                                     "(SELECT id FROM kernels", kOfKey, ") ORDER BY id")));
  RETURN_IF_ERROR(BindKey(key, &statement));
  std::vector<Sample> samples;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return samples;
    ASSIGN_OR_RETURN(Sample sample, SampleFrom(statement, 0, path_));
    samples.push_back(std::move(sample));
  }
}

absl::StatusOr<std::optional<double>> RecordStore::Query(const KernelKey& key) const {
  ASSIGN_OR_RETURN(std::vector<Sample> samples, History(key));
  if (samples.empty()) return std::nullopt;
  return Record{key, std::move(samples)}.seconds();
}

absl::StatusOr<std::vector<Record>> RecordStore::Select(const RecordFilter& filter) const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  std::string where;
  std::vector<absl::string_view> values;
  for (const auto& [column, value] : {std::pair<const char*, const std::string&>{"gpu", filter.gpu},
                                      {"library", filter.library},
                                      {"version", filter.version}}) {
    if (value.empty()) continue;
    absl::StrAppend(&where, values.empty() ? " WHERE " : " AND ", column, " = ?");
    values.push_back(value);
  }
  ASSIGN_OR_RETURN(SqliteStatement statement,
                   database_.Prepare(absl::StrCat(
                       "SELECT kernels.id, gpu, op, shape, dtype, layout, library, version, ",
                       kSampleColumns, " FROM kernels JOIN samples ON samples.kernel = kernels.id",
                       where, " ORDER BY kernels.id, samples.id")));
  for (size_t i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(statement.Bind(static_cast<int>(i), values[i]));
  }
  std::vector<Record> records;
  int64_t last = -1;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return records;
    if (statement.Int(0) != last) {
      last = statement.Int(0);
      KernelKey key;
      int column = 1;
      for (std::string* field :
           {&key.gpu, &key.op, &key.shape, &key.dtype, &key.layout, &key.library, &key.version}) {
        *field = statement.Text(column++);
      }
      records.push_back({std::move(key), {}});
    }
    ASSIGN_OR_RETURN(Sample sample, SampleFrom(statement, 8, path_));
    records.back().samples.push_back(std::move(sample));
  }
}

absl::StatusOr<std::vector<RecordSummary>> RecordStore::Summarise() const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  ASSIGN_OR_RETURN(SqliteStatement statement,
                   database_.Prepare("SELECT gpu, op, source, count(DISTINCT kernels.id), count(*) "
                                     "FROM kernels JOIN samples ON samples.kernel = kernels.id "
                                     "GROUP BY gpu, op, source ORDER BY gpu, op, source"));
  std::vector<RecordSummary> out;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return out;
    out.push_back({statement.Text(0), statement.Text(1), statement.Text(2), statement.Int(3),
                   statement.Int(4)});
  }
}

absl::StatusOr<int64_t> RecordStore::size() const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  return Count("SELECT count(*) FROM kernels");
}

absl::StatusOr<int64_t> RecordStore::generation() const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  return Count("SELECT coalesce(max(id), 0) FROM samples");
}

}  // namespace plancast
