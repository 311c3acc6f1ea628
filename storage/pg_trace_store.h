// PgTraceStore: TraceStore on PostgreSQL, on a few connections of its own, each borrowed for one call: who
// takes a trace slowly holds none. Thread-safe.
//
//   PgTraceStore store({.url = url});
#pragma once

#include <memory>
#include <string>

#include "storage/pg_shelf.h"
#include "storage/trace_store.h"

namespace stepwell {

class PgTraceStore final : public TraceStore {
 public:
  struct Options {
    std::string url;
    int connections_max = 4;
    // A stopped master lets go of its locks after this.
    absl::Duration idle_in_transaction_timeout = absl::Seconds(10);
    // Of all its connections; null = none.
    std::shared_ptr<const PgCut> cut = nullptr;
  };
  // Connects at the first call. REQUIRES: the schema is migrated.
  explicit PgTraceStore(const Options& options);

  absl::StatusOr<TraceRecord> Begin(std::int64_t owner_epoch, const TrialSelector& trial,
                                    const TrialFilter& trials,
                                    const StoredTraceHeader& header) override;
  absl::Status Append(std::int64_t owner_epoch, TraceRecord& trace,
                      std::string_view bytes) override;
  absl::StatusOr<TraceRecord> Delete(std::int64_t owner_epoch, const TrialSelector& trial,
                                     const ProjectFilter& projects, std::int32_t trace_no) override;
  absl::Status Discard(std::int64_t owner_epoch, const TraceRecord& trace) override;
  absl::StatusOr<TraceRecord> Find(const TrialSelector& trial, const ProjectFilter& projects,
                                   std::int32_t trace_no) override;
  absl::StatusOr<TraceList> List(const TrialSelector& trial, const ProjectFilter& projects,
                                 std::int32_t after_trace_no, std::int32_t limit) override;
  absl::StatusOr<std::string> ReadPart(const TraceRecord& trace, std::int64_t part_no) override;

 private:
  // `expected`: only where it is an upload that stands there.
  absl::StatusOr<TraceRecord> GiveUp(PgConnection& connection, std::int64_t owner_epoch,
                                     TrialId trial_id, std::int32_t trace_no,
                                     const TraceRecord* expected);

  PgShelf shelf_;
};

}  // namespace stepwell
