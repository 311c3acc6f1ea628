// TraceStore: traces of trials in the database: begun, filled part by part, read part by part, deleted.
// PgTraceStore is the real one.
//
//   STEPWELL_ASSIGN_OR_RETURN(TraceRecord trace, store.Begin(epoch, trial, projects, header));
//   while (trace.state == StoredTraceState::kUploading) store.Append(epoch, trace, next_mib_of_it);
//   STEPWELL_ASSIGN_OR_RETURN(std::string bytes, store.ReadPart(trace, 0));
//
// Errors: kInvalidArgument = a field, and what is allowed; kNotFound = no such trial or trace, or the trial lies in none
// of the projects that its asker may be told of;
// kFailedPrecondition = archived, a writer of another trial, another call goes on with the trace;
// kResourceExhausted = a cap, its name in the payload "stepwell/reason", noted with the trial; kAborted =
// another master owns the database; kUnavailable = come again: all calls may be made twice.
// Thread-safe; each call blocks on the database, and holds nothing of it afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/uuid.h"
#include "storage/ingest_store.h"
#include "storage/project_filter.h"
#include "storage/trial_filter.h"

namespace stepwell {

// As in the wire contract.
enum class StoredTraceFormat : std::int16_t {
  kChromeJson = 1,
  kPerfetto = 2,
  kXplane = 3,
  kText = 4
};
enum class StoredTraceState : std::int16_t {
  kUploading = 1,
  kComplete = 2,
  kRefused = 3,
  kRemoved = 4,
  // Nobody sees it any more; its rows go.
  kDeleted = 5,
};

// All parts of a trace but the last are of so many bytes.
inline constexpr std::int64_t kTracePartBytes = 1 << 20;
// Whatever caps say: a part's number stays small.
inline constexpr std::int64_t kTraceBytesMax = INT64_C(1) << 40;
// Of a trial, whatever their size; those that were refused or removed among them.
inline constexpr std::int32_t kTracesOfTrialMax = 10'000;

struct StoredTraceHeader {
  std::string name = {};
  StoredTraceFormat format = StoredTraceFormat::kChromeJson;
  std::int64_t byte_count = 0;
  std::string sha256 = {};  // 32 bytes
  std::optional<std::int32_t> rank = {};
  std::optional<Uuid> writer = {};
  std::string machine = {};
  std::optional<std::int32_t> epoch = {};
  std::optional<std::int32_t> first_batch = {};
  std::optional<std::int32_t> last_batch = {};
};

struct TraceRecord {
  TrialId trial_id{};
  std::int32_t trace_no = 0;
  StoredTraceHeader header = {};
  StoredTraceState state{};
  std::int64_t received_bytes = 0;
  std::int64_t created_time_us = 0;
  std::int64_t changed_time_us = 0;
  std::string reason = {};
};

struct TraceList {
  TrialId trial_id{};
  std::vector<TraceRecord> traces = {};  // by trace_no
  bool more = false;
  // By the ledger: of traces that are complete or uploading.
  std::int64_t byte_count = 0;
  std::int64_t refused_count = 0;
};

class TraceStore {
 public:
  virtual ~TraceStore() = default;

  // The same name and SHA-256 in the same trial are one trace: it is answered as it stands, and its caller
  // goes on with it where it is not complete.
  [[nodiscard]] virtual absl::StatusOr<TraceRecord> Begin(std::int64_t owner_epoch,
                                                          const TrialSelector& trial,
                                                          const TrialFilter& trials,
                                                          const StoredTraceHeader& header) = 0;
  // The next part, durable when it returns; `trace` is moved on. REQUIRES: kTracePartBytes, or what is left;
  // with the last of them the trace is complete.
  [[nodiscard]] virtual absl::Status Append(std::int64_t owner_epoch, TraceRecord& trace,
                                            std::string_view bytes) = 0;
  // What deleted the trace, or was left of its upload, goes: nobody sees it from the COMMIT on. Its rows go
  // within a second, or with sweeps.
  [[nodiscard]] virtual absl::StatusOr<TraceRecord> Delete(std::int64_t owner_epoch,
                                                           const TrialSelector& trial,
                                                           const ProjectFilter& projects,
                                                           std::int32_t trace_no) = 0;
  // As Delete, of an upload that stands where `trace` does and nowhere else: whose bytes another call completed
  // is not touched. kFailedPrecondition.
  [[nodiscard]] virtual absl::Status Discard(std::int64_t owner_epoch,
                                             const TraceRecord& trace) = 0;
  [[nodiscard]] virtual absl::StatusOr<TraceRecord> Find(const TrialSelector& trial,
                                                         const ProjectFilter& projects,
                                                         std::int32_t trace_no) = 0;
  [[nodiscard]] virtual absl::StatusOr<TraceList> List(const TrialSelector& trial,
                                                       const ProjectFilter& projects,
                                                       std::int32_t after_trace_no,
                                                       std::int32_t limit) = 0;
  // Bytes from part_no * kTracePartBytes on. kNotFound: the trace went meanwhile.
  [[nodiscard]] virtual absl::StatusOr<std::string> ReadPart(const TraceRecord& trace,
                                                             std::int64_t part_no) = 0;
};

}  // namespace stepwell
