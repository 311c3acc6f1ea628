// CaptureTable: how far each rank of one capture is: what agents report, what uploads say, and which steps all ranks have in
// common. A core without I/O; the directives are TraceCapturing's. Thread-safe.
//
//   CaptureTable table(number, step_count, ranks);
//   table.Reported(writer_no, generation, report);      // ingest streams
//   table.Uploaded(name, trace_no);                     // the trace service
//   if (const auto first = table.Decide()) ...          // once every rank has answered or failed
//   table.AwaitChange(version, deadline);               // the call's thread
//
// Invariant: the first batch is the highest of those that the ranks said they can give whole, and it is decided once: so each
// rank that has not failed records the same steps, be it the fastest or the slowest. A rank only goes forward (asked,
// recording, uploading, stored), or fails with a reason; what comes for it after that, or of another generation, another
// capture or another file, changes nothing. It survives reports that come twice, too late or out of order (an upload's end
// is often known before the report that names its file), and agents that say nonsense.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/steady_time.h"
#include "stepwell/v1/ingest.pb.h"
#include "stepwell/v1/trace.pb.h"
#include "storage/model.h"

namespace stepwell {

class CaptureTable {
 public:
  struct Rank {
    std::int32_t rank = 0;
    // Absent: nobody can be asked, `reason` and `message` say why.
    std::optional<WriterNo> writer_no = {};
    std::uint64_t generation = 0;
    std::string reason = {};
    // Of one that can be asked: what people should know of it beside how it ends.
    std::string message = {};
  };

  // `number` is not 0. `native`: what a native profiler of each rank saw is wanted, too. REQUIRES: step_count > 0; ranks are
  // distinct.
  CaptureTable(std::uint64_t number, std::int32_t step_count, const std::vector<Rank>& ranks,
               bool native = false);

  std::uint64_t number() const { return number_; }
  std::int32_t step_count() const { return step_count_; }

  // `report` is untrusted.
  void Reported(WriterNo writer_no, std::uint64_t generation, const v1::CaptureReport& report)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Uploaded(const std::string& name, std::int32_t trace_no) ABSL_LOCKS_EXCLUDED(mu_);
  void NotUploaded(const std::string& name, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);
  // Where it has not come further than `state`.
  void Fail(WriterNo writer_no, v1::CaptureState state, const std::string& reason,
            const std::string& message) ABSL_LOCKS_EXCLUDED(mu_);

  // Those whose native profile has not come further than `state`, where it is wanted.
  void FailNative(v1::CaptureState state, const std::string& reason, const std::string& message)
      ABSL_LOCKS_EXCLUDED(mu_);
  // That of one.
  void FailNative(WriterNo writer_no, v1::CaptureState state, const std::string& reason,
                  const std::string& message) ABSL_LOCKS_EXCLUDED(mu_);

  // The first batch of all, once: as soon as each rank that can be asked has answered or failed and one has answered.
  std::optional<std::int32_t> Decide() ABSL_LOCKS_EXCLUDED(mu_);

  struct Writer {
    WriterNo writer_no{};
    std::uint64_t generation = 0;
  };
  // Whose ranks are in that state.
  std::vector<Writer> In(v1::CaptureState state) const ABSL_LOCKS_EXCLUDED(mu_);
  // Whose native profiles are.
  std::vector<Writer> NativeIn(v1::CaptureState state) const ABSL_LOCKS_EXCLUDED(mu_);

  struct Shown {
    std::uint64_t version = 0;        // grows with each change
    v1::CaptureTraceResponse answer;  // without trial_id
  };
  Shown Show() const ABSL_LOCKS_EXCLUDED(mu_);
  // Until something changed since that version, or then.
  void AwaitChange(std::uint64_t version, SteadyTime deadline) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Row {
    Rank asked = {};
    v1::CapturedRank shown = {};
    std::int32_t first_batch = 0;  // once it recorded: what it can give
  };
  struct Ended {
    std::int32_t trace_no = 0;  // 0: it failed
    std::string why = {};
  };

  Row* FindLocked(WriterNo writer_no) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SettleLocked(Row& row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SettleNativeLocked(Row& row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool ReportedNativeLocked(Row& row, const v1::CaptureReport& report)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndUploadLocked(const std::string& name, Ended ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void FailRow(Row& row, const std::string& reason, const std::string& message);
  void FailNativeLocked(Row& row, v1::CaptureState state, const std::string& reason,
                        const std::string& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void FailNativeOf(Row& row, const std::string& reason, const std::string& message);
  static bool HasEnded(v1::CaptureState state);
  static bool IsOver(const Row& row);

  const std::uint64_t number_;
  const std::int32_t step_count_;
  mutable absl::Mutex mu_;
  std::vector<Row> rows_ ABSL_GUARDED_BY(mu_);  // by rank
  std::optional<std::int32_t> first_batch_ ABSL_GUARDED_BY(mu_);
  // Of files that no rank has named yet.
  std::map<std::string, Ended> uploads_ ABSL_GUARDED_BY(mu_);
  std::uint64_t version_ ABSL_GUARDED_BY(mu_) = 1;
};

}  // namespace stepwell
