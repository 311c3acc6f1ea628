// TraceCapturing: captures of traces on demand, from the call of a person to traces that are stored: it asks the agents of a
// trial's ranks by directives, hears their reports and of their uploads, and says how far each rank is. Stands between
// TraceGrpcService (calls, uploads), IngestStream (reports) and WriterDirector (directives). Thread-safe; Run blocks as long
// as its capture lasts.
//
//   TraceCapturing capturing(director, look_up);
//   capturing.Run(request, still_asked, [&](const v1::CaptureTraceResponse& news) { ... });   // the call's thread
//   capturing.Reported(trial_id, writer_no, generation, report);                              // streams
//   capturing.Uploaded(trial_id, name, trace_no);                                             // uploads
//
// Invariant: one capture of a trial at a time, at most kCapturesMax of all; each rank that was asked for ends stored or failed
// with a reason before Run returns OK, whatever its agent does, and at most timeout + kUploadPatience after it began. It
// survives agents that are silent, older than captures or gone, ranks that end, and a caller that goes: what no rank has
// begun is then taken back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/capture_table.h"
#include "server/complaint.h"
#include "server/writer_director.h"
#include "storage/ingest_store.h"
#include "storage/read_store.h"

namespace stepwell {

struct CaptureWish {
  TrialSelector trial = {};
  ProjectFilter projects;                // that the asker may be told of
  std::vector<std::int32_t> ranks = {};  // sorted; empty = all that are open
  std::int32_t step_count = 0;
  absl::Duration timeout = {};
  bool native = false;
};
// Reasons: TRIAL_REF, RANK_COUNT, RANK_RANGE, RANK_TWICE, STEP_COUNT, TIMEOUT_RANGE.
MaybeComplaint CheckCapture(const v1::CaptureTraceRequest& request_untrusted, CaptureWish& wish);

class TraceCapturing {
 public:
  static constexpr int kCapturesMax = 8;
  static constexpr int kRanksMax = 256;
  static constexpr std::int32_t kStepsMax = 1000;
  struct Options {
    // An agent answers within half a second, as a rule.
    absl::Duration answer_patience = absl::Seconds(2);
    // Of a native capture, which begins NativeCapture::kNoticeTime after the last answer, and within two seconds of the call, too.
    absl::Duration native_answer_patience = absl::Seconds(1);
    // For what is recorded when the timeout passes.
    absl::Duration upload_patience = absl::Seconds(15);
  };
  // What the database says. They block, until the deadline at most.
  struct LookUp {
    std::function<absl::StatusOr<TrialId>(const TrialSelector&, const ProjectFilter&, SteadyTime)>
        find_trial;
    std::function<absl::StatusOr<std::vector<WriterRecord>>(TrialId, SteadyTime)> list_writers;
  };

  // `director` and what `look_up` holds outlive this.
  TraceCapturing(WriterDirector& director, LookUp look_up, Options options)
      : director_(director), look_up_(std::move(look_up)), options_(options) {}
  TraceCapturing(WriterDirector& director, LookUp look_up)
      : TraceCapturing(director, std::move(look_up), Options()) {}

  // `send` is called with each change; what it returns ends the capture unless it is OK. kFailedPrecondition: no rank is
  // open (NO_OPEN_RANK), or another capture of the trial is under way (CAPTURE_UNDER_WAY); kResourceExhausted: too many
  // ranks, or captures of other trials. The reason is the payload "stepwell/reason".
  absl::Status Run(const CaptureWish& wish, const std::function<bool()>& is_asked,
                   const std::function<absl::Status(const v1::CaptureTraceResponse&)>& send)
      ABSL_LOCKS_EXCLUDED(mu_);

  void Reported(TrialId trial_id, WriterNo writer_no, std::uint64_t generation,
                const v1::CaptureReport& report) ABSL_LOCKS_EXCLUDED(mu_);
  void Uploaded(TrialId trial_id, const std::string& name, std::int32_t trace_no)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The trial as the upload named it: it may be none. For good: who uploads does not come again. Asks the database where
  // captures are under way.
  void NotUploaded(const TrialSelector& trial, const std::string& name, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::StatusOr<std::vector<CaptureTable::Rank>> ChooseRanks(TrialId trial_id,
                                                              const CaptureWish& wish,
                                                              SteadyTime deadline) const;
  absl::StatusOr<std::shared_ptr<CaptureTable>> Begin(TrialId trial_id, const CaptureWish& wish,
                                                      const std::vector<CaptureTable::Rank>& ranks)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Conduct(TrialId trial_id, CaptureTable& table, const CaptureWish& wish,
                       const std::function<bool()>& is_asked,
                       const std::function<absl::Status(const v1::CaptureTraceResponse&)>& send);
  void Direct(TrialId trial_id, CaptureTable& table, v1::CaptureState state,
              const v1::Capture& asked);
  void FailGone(TrialId trial_id, CaptureTable& table) const;
  static void FailLate(CaptureTable& table, v1::CaptureState state, const std::string& reason,
                       const std::string& message);
  std::shared_ptr<CaptureTable> Find(TrialId trial_id) const ABSL_LOCKS_EXCLUDED(mu_);

  WriterDirector& director_;
  const LookUp look_up_;
  const Options options_;
  mutable absl::Mutex mu_;
  std::map<TrialId, std::shared_ptr<CaptureTable>> under_way_
      ABSL_GUARDED_BY(mu_);  // this, the call
};

}  // namespace stepwell
