#ifndef PLANCAST_COST_MODELS_RECORDS_RECORD_STORE_H_
#define PLANCAST_COST_MODELS_RECORDS_RECORD_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/fork_safe_mutex.h"
#include "cost_models/records/kernel_key.h"
#include "cost_models/records/sqlite.h"

namespace plancast {

// One measurement of one kernel.
struct Sample {
  double seconds = 0;                       // positive; the median of its repetitions
  double seconds_min = 0, seconds_max = 0;  // over repetitions; 0: not known
  int64_t count = 1;                        // repetitions
  std::string source;                       // data set or command
  std::string timing;                       // how: `graph`, `event`, `event_eager`, `cupti`, ...
  std::string date;                         // YYYY-MM-DD; may be empty
};

struct Measurement {
  int64_t row = 0;  // of the source file
  KernelKey key;
  Sample sample;
};

// A kernel with its whole history, oldest first. The answer is the best sample.
struct Record {
  KernelKey key;
  std::vector<Sample> samples;

  double seconds() const;
};

// Empty fields: any.
struct RecordFilter {
  std::string gpu, library, version;
};

struct RecordSummary {
  std::string gpu, op, source;
  int64_t kernels = 0, samples = 0;
};

// A file of measured kernels (SQLite). Thread-safe, and safe alongside other
// processes: any number read while one writes; writers wait for each other. A
// process that forks waits for statements under way, so that the child may go on.
//
// - Every sample is kept; the best of a key is its answer.
// - What was acknowledged survives a crash; what was not leaves no trace.
// - A row of a source file enters once, however often the file is ingested.
class RecordStore {
 public:
  enum class Access {
    kRead,    // an existing store
    kCreate,  // reads and writes; makes the file if absent
  };

  // Errors: no such file or folder, no permission, no database or another one,
  // a damaged file, a schema newer than this library knows. `before_statement`:
  // for tests of faults, see SqliteDatabase.
  static absl::StatusOr<std::unique_ptr<RecordStore>> Open(
      const std::string& path, Access access, std::function<absl::Status()> before_statement = {});

  // One sample more. Errors: a key that names no kernel; a time that is none.
  absl::Status Add(const KernelKey& key, const Sample& sample);

  // The rows of one source file, known by the digest of its contents, in one
  // transaction. Rows that the ledger has are left out, so an ingest that was
  // cut short is resumed by doing it again. Gives how many rows were new.
  absl::StatusOr<int64_t> Ingest(absl::string_view digest, absl::Span<const Measurement> rows);

  // Notes a source file before its rows come: name and size in bytes.
  absl::Status NoteSource(absl::string_view digest, absl::string_view name, int64_t bytes);
  struct Source {
    std::string digest, name;
    int64_t bytes = 0;
  };
  absl::StatusOr<std::vector<Source>> Sources() const;
  // Rows of that file in the ledger.
  absl::StatusOr<std::set<int64_t>> IngestedRows(absl::string_view digest) const;

  // The stored time of exactly that kernel, GPU, library and version; nullopt on a miss.
  absl::StatusOr<std::optional<double>> Query(const KernelKey& key) const;
  // All samples of it, oldest first; none on a miss.
  absl::StatusOr<std::vector<Sample>> History(const KernelKey& key) const;
  // In the order in which their first samples came.
  absl::StatusOr<std::vector<Record>> Select(const RecordFilter& filter) const;
  // By GPU, op and source.
  absl::StatusOr<std::vector<RecordSummary>> Summarise() const;
  // Distinct kernels.
  absl::StatusOr<int64_t> size() const;
  // Changes with every sample: equal values, equal contents.
  absl::StatusOr<int64_t> generation() const;
  const std::string& path() const { return path_; }

 private:
  RecordStore(std::string path, SqliteDatabase database)
      : path_(std::move(path)), database_(std::move(database)) {}
  absl::Status PrepareSchema(Access access);
  absl::StatusOr<int64_t> Count(absl::string_view sql) const;

  const std::string path_;
  mutable ForkSafeMutex mutex_;  // one statement at a time
  SqliteDatabase database_;
};

}  // namespace plancast

#endif  // PLANCAST_COST_MODELS_RECORDS_RECORD_STORE_H_
