#include "server/trace_service.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/trace/gzip_packer.h"
#include "server/grpc_access.h"
#include "server/grpc_error.h"
#include "server/query_wire.h"
#include "server/rate_limits.h"
#include "server/rate_wait.h"
#include "server/read_admission.h"
#include "server/stall_watch.h"
#include "server/text_check.h"
#include "server/trace_counters.h"
#include "server/trace_merging.h"
#include "server/trace_summary.h"
#include "server/trace_wire.h"
#include "stepwell/v1/trace.grpc.pb.h"
#include "storage/trace_uploading.h"

namespace stepwell {
namespace {

// How long a call waits for its turn before it is refused.
constexpr absl::Duration kTurnPatience = absl::Seconds(2);
constexpr std::int32_t kPageDefault = 100;
constexpr std::int32_t kPageMax = 1000;
constexpr std::int32_t kStepsDefault = 1000;
constexpr std::int32_t kStepsAnsweredMax = 10'000;
// What machines measured is read for so long at most, while a client takes it.
constexpr absl::Duration kCountersPatience = absl::Seconds(30);
// Of one message with bytes of a merge.
constexpr std::size_t kMessageBytes = 1 << 18;
// What a part of an upload costs at least, of bytes to write: clients send a hundred kilobytes and more in one.
constexpr std::ptrdiff_t kPartBytesPaid = 16 << 10;

grpc::Status NoTurn(const absl::Status& status) {
  return GrpcError(
      status, {.reason = "TRACES_UNDER_WAY", .retry_delay = absl::Seconds(1), .violations = {}});
}

}  // namespace

class TraceGrpcService::Impl final : public v1::TraceService::Service {
 public:
  Impl(TraceStore& store, MasterState& state, const QueryReads& reads, TraceCapturing& capturing,
       Options options)
      : store_(store),
        state_(state),
        samples_(reads),
        capturing_(capturing),
        stalls_(options.stall_max),
        uploads_(options.uploads_max),
        reads_(options.reads_max, options.writers_wait),
        merges_(options.merges_max, options.writers_wait),
        access_(options.access) {}

  grpc::Status UploadTrace(grpc::ServerContext* context,
                           grpc::ServerReader<v1::UploadTraceRequest>* reader,
                           v1::UploadTraceResponse* response) override {
    const GrpcEntry entry = EnterIngest(access_, *context);
    if (!entry.ok()) return entry.status;
    auto ticket = uploads_.Enter(kTurnPatience, PayerOf(entry.caller));
    if (!ticket.ok()) return NoTurn(ticket.status());
    const MasterState::Snapshot now = state_.Get();
    if (!now.accepting()) return GrpcError(absl::UnavailableError(now.reason()));
    StallWatch::Call watched(
        stalls_, [context] { context->TryCancel(); }, entry.caller);
    const auto next = [&](v1::UploadTraceRequest& message) {
      const StallWatch::Write write(watched);
      return reader->Read(&message);
    };
    TraceUploading uploading(store_, now.epoch, [&](std::int64_t byte_count) {
      return Pay(RateKind::kReadBytes, *context, entry.caller, now.epoch, byte_count);
    });
    v1::UploadTraceRequest message;
    const bool has_begun = next(message);
    if (HasEnded(entry.caller)) return GrpcError(TokenEnded());
    if (!has_begun || !message.has_upload()) {
      return GrpcError(Invalid("HEADER", "the first message of an upload is its header: upload"));
    }
    const grpc::Status may_enter =
        MayEnter(access_, entry.caller, *v1::UploadTraceRequest::descriptor(), message.upload());
    if (!may_enter.ok()) return may_enter;
    TraceBeginning beginning;
    if (auto complaint = CheckTraceUpload(message.upload(), beginning)) {
      return GrpcError(*complaint);
    }
    if (const absl::Status begun =
            uploading.Begin(beginning.trial, IngestibleTrials(entry.caller), beginning.header);
        !begun.ok()) {
      LogRefusal(begun, beginning.header);
      if (absl::IsResourceExhausted(begun) || absl::IsInvalidArgument(begun)) {
        capturing_.NotUploaded(beginning.trial, beginning.header.name, begun);
      }
      return Failed("UploadTrace", begun, now.epoch);
    }
    while (!uploading.is_complete() && next(message)) {
      if (!message.has_part()) {
        return GrpcError(Invalid("PART", "a message behind the header of an upload is a part"));
      }
      if (HasEnded(entry.caller)) return GrpcError(TokenEnded());
      // Its next call goes on here.
      if (!state_.Get().accepting()) {
        return GrpcError(absl::UnavailableError(state_.Get().reason()));
      }
      const absl::Status paid = Pay(RateKind::kIngestBytes, *context, entry.caller, now.epoch,
                                    std::max(kPartBytesPaid, std::ssize(message.part().data())));
      if (!paid.ok()) return GrpcError(paid);
      const absl::Status taken = uploading.Take(message.part().offset(), message.part().data());
      if (!taken.ok()) return Failed("UploadTrace", taken, now.epoch);
    }
    if (!uploading.is_complete() && HasEnded(entry.caller)) return GrpcError(TokenEnded());
    if (uploading.is_complete()) {
      capturing_.Uploaded(uploading.trace().trial_id, uploading.trace().header.name,
                          uploading.trace().trace_no);
    }
    response->set_trial_id(Value(uploading.trace().trial_id));
    response->set_trace_no(uploading.trace().trace_no);
    response->set_received_bytes(uploading.trace().received_bytes);
    response->set_complete(uploading.is_complete());
    return grpc::Status::OK;
  }

  grpc::Status ListTraces(grpc::ServerContext* context, const v1::ListTracesRequest* request,
                          v1::ListTracesResponse* response) override {
    const GrpcEntry entry = EnterCall(access_, *context, *request);
    if (!entry.ok()) return entry.status;
    const auto trial = CheckTrialRef(request->trial());
    if (!trial.ok()) return GrpcError(Invalid("TRIAL_REF", std::string(trial.status().message())));
    const auto limit = CheckSize("page_size", request->page_size(), kPageDefault, kPageMax);
    if (!limit.ok()) return GrpcError(limit.status());
    const auto list =
        store_.List(*trial, ReadableProjects(entry.caller), request->after_trace_no(), *limit);
    if (!list.ok()) return Failed("ListTraces", list.status(), 0);
    response->set_trial_id(Value(list->trial_id));
    for (const TraceRecord& trace : list->traces) *response->add_traces() = ToWire(trace);
    if (list->more) response->set_next_after_trace_no(list->traces.back().trace_no);
    response->set_byte_count(list->byte_count);
    response->set_refused_count(list->refused_count);
    return grpc::Status::OK;
  }

  grpc::Status GetTrace(grpc::ServerContext* context, const v1::GetTraceRequest* request,
                        grpc::ServerWriter<v1::GetTraceResponse>* writer) override {
    const GrpcEntry entry = EnterCall(access_, *context, *request);
    if (!entry.ok()) return entry.status;
    TrialSelector trial;
    if (auto complaint = CheckTraceRef(request->trial(), request->trace_no(), trial)) {
      return GrpcError(*complaint);
    }
    auto ticket = reads_.Enter(kTurnPatience, PayerOf(entry.caller));
    if (!ticket.ok()) return NoTurn(ticket.status());
    StallWatch::Call watched(
        stalls_, [context] { context->TryCancel(); }, entry.caller);
    return EndOfCall(entry.caller, Failed("GetTrace",
                                          SendTrace(WhileAsked(context, entry.caller), entry.caller,
                                                    *request, trial, watched, *writer),
                                          0));
  }

  grpc::Status MergeTraces(grpc::ServerContext* context, const v1::MergeTracesRequest* request,
                           grpc::ServerWriter<v1::MergeTracesResponse>* writer) override {
    const GrpcEntry entry = EnterCall(access_, *context, *request);
    if (!entry.ok()) return entry.status;
    const auto trial = CheckTrialRef(request->trial());
    if (!trial.ok()) return GrpcError(Invalid("TRIAL_REF", std::string(trial.status().message())));
    auto ticket = merges_.Enter(kTurnPatience, PayerOf(entry.caller));
    if (!ticket.ok()) return NoTurn(ticket.status());
    StallWatch::Call watched(
        stalls_, [context] { context->TryCancel(); }, entry.caller);
    return EndOfCall(entry.caller, Failed("MergeTraces",
                                          SendMerge(WhileAsked(context, entry.caller), entry.caller,
                                                    *request, *trial, watched, *writer),
                                          0));
  }

  grpc::Status SummarizeTrace(grpc::ServerContext* context,
                              const v1::SummarizeTraceRequest* request,
                              v1::SummarizeTraceResponse* response) override {
    const GrpcEntry entry = EnterCall(access_, *context, *request);
    if (!entry.ok()) return entry.status;
    TrialSelector trial;
    if (auto complaint = CheckTraceRef(request->trial(), request->trace_no(), trial)) {
      return GrpcError(*complaint);
    }
    const auto steps_max =
        CheckSize("steps_max", request->steps_max(), kStepsDefault, kStepsAnsweredMax);
    if (!steps_max.ok()) return GrpcError(steps_max.status());
    auto ticket = merges_.Enter(kTurnPatience, PayerOf(entry.caller));
    if (!ticket.ok()) return NoTurn(ticket.status());
    auto summary =
        SummarizeStored(store_, trial, ReadableProjects(entry.caller), request->trace_no(),
                        *steps_max, WhileAsked(context, entry.caller));
    if (summary.ok()) *response = std::move(*summary);
    return Failed("SummarizeTrace", summary.status(), 0);
  }

  grpc::Status DeleteTrace(grpc::ServerContext* context, const v1::DeleteTraceRequest* request,
                           v1::DeleteTraceResponse* response) override {
    const GrpcEntry entry = EnterCall(access_, *context, *request);
    if (!entry.ok()) return entry.status;
    TrialSelector trial;
    if (auto complaint = CheckTraceRef(request->trial(), request->trace_no(), trial)) {
      return GrpcError(*complaint);
    }
    const MasterState::Snapshot now = state_.Get();
    if (!now.ready()) return GrpcError(absl::UnavailableError(now.reason()));
    const auto deleted =
        store_.Delete(now.epoch, trial, ReadableProjects(entry.caller), request->trace_no());
    if (!deleted.ok()) return Failed("DeleteTrace", deleted.status(), now.epoch);
    log::Info("trace_deleted", {{"trial", Value(deleted->trial_id)}, {"trace", deleted->trace_no}});
    response->set_trial_id(Value(deleted->trial_id));
    response->set_byte_count(deleted->received_bytes);
    return grpc::Status::OK;
  }

  grpc::Status CaptureTrace(grpc::ServerContext* context, const v1::CaptureTraceRequest* request,
                            grpc::ServerWriter<v1::CaptureTraceResponse>* writer) override {
    const GrpcEntry entry = EnterCall(access_, *context, *request);
    if (!entry.ok()) return entry.status;
    CaptureWish wish{.projects = ReadableProjects(entry.caller)};
    if (auto complaint = CheckCapture(*request, wish)) return GrpcError(*complaint);
    const MasterState::Snapshot now = state_.Get();
    if (!now.accepting()) return GrpcError(absl::UnavailableError(now.reason()));
    StallWatch::Call watched(
        stalls_, [context] { context->TryCancel(); }, entry.caller);
    const absl::Status ran = capturing_.Run(
        wish,
        [&] {
          const MasterState::Snapshot then = state_.Get();
          return !context->IsCancelled() && !HasEnded(entry.caller) && then.accepting() &&
                 then.epoch == now.epoch;
        },
        [&](const v1::CaptureTraceResponse& news) { return Send(news, watched, *writer); });
    if (absl::IsCancelled(ran) && !state_.Get().accepting()) {
      return GrpcError(absl::UnavailableError(state_.Get().reason()));
    }
    return EndOfCall(entry.caller, Failed("CaptureTrace", ran, now.epoch));
  }

 private:
  static MayGoOn WhileAsked(grpc::ServerContext* context, Caller caller) {
    return [context, caller = std::move(caller)]() -> absl::Status {
      if (HasEnded(caller)) return TokenEnded();
      return context->IsCancelled() ? absl::CancelledError("nobody waits any more")
                                    : absl::OkStatus();
    };
  }
  // Waits until an upload may have so much, for the next call would read back what this one has read. Of a database that does not
  // answer for a moment it hears where it writes.
  absl::Status Pay(RateKind kind, grpc::ServerContext& context, const Caller& caller,
                   std::int64_t epoch, std::int64_t byte_count) {
    const MayGoOn may_go_on = WhileAsked(&context, caller);
    absl::Status may;
    const auto goes_on = [&] {
      may = may_go_on();
      const MasterState::Snapshot then = state_.Get();
      if (may.ok() && (then.epoch != epoch || then.role != MasterRole::kOwner)) {
        may = absl::UnavailableError(then.reason());
      }
      return may.ok();
    };
    if (!goes_on() || access_ == nullptr || access_->rates() == nullptr) return may;
    const std::string address = AddressOf(context);
    AwaitRate(*access_->rates(), kind, {address, caller.get()}, static_cast<double>(byte_count),
              goes_on);
    return may;
  }
  // Blocks while the client is slow: that is the bound on memory.
  template <typename Response>
  static absl::Status Send(const Response& message, StallWatch::Call& watched,
                           grpc::ServerWriter<Response>& writer) {
    const StallWatch::Write write(watched);
    return writer.Write(message) ? absl::OkStatus() : absl::CancelledError("nobody reads any more");
  }

  absl::Status SendTrace(const MayGoOn& may_go_on, const Caller& caller,
                         const v1::GetTraceRequest& request, const TrialSelector& trial,
                         StallWatch::Call& watched,
                         grpc::ServerWriter<v1::GetTraceResponse>& writer) {
    STEPWELL_ASSIGN_OR_RETURN(const TraceRecord trace,
                              store_.Find(trial, ReadableProjects(caller), request.trace_no()));
    if (trace.state != StoredTraceState::kComplete) {
      return absl::FailedPreconditionError(
          absl::StrCat("trace ", trace.trace_no, " is not whole: ", trace.received_bytes, " of ",
                       trace.header.byte_count, " bytes are there",
                       trace.reason.empty() ? "" : absl::StrCat(" (", trace.reason, ")")));
    }
    std::int64_t at = request.offset();
    if (at < 0 || at > trace.header.byte_count) {
      return absl::InvalidArgumentError(
          absl::StrCat("offset is ", at, "; allowed: 0 to ", trace.header.byte_count));
    }
    v1::GetTraceResponse message;
    *message.mutable_trace() = ToWire(trace);
    STEPWELL_RETURN_IF_ERROR(Send(message, watched, writer));
    return SourceOfStored(store_, trace, at,
                          may_go_on)([&](std::string_view bytes) -> absl::Status {
      message.mutable_part()->set_offset(at);
      message.mutable_part()->set_data(bytes.data(), bytes.size());
      at += static_cast<std::int64_t>(bytes.size());
      return Send(message, watched, writer);
    });
  }

  absl::Status SendMerge(const MayGoOn& may_go_on, const Caller& caller,
                         const v1::MergeTracesRequest& request, const TrialSelector& trial,
                         StallWatch::Call& watched,
                         grpc::ServerWriter<v1::MergeTracesResponse>& writer) {
    const bool is_perfetto = request.format() == v1::TRACE_FORMAT_PERFETTO;
    if (!is_perfetto && request.format() != v1::TRACE_FORMAT_UNSPECIFIED &&
        request.format() != v1::TRACE_FORMAT_CHROME_JSON) {
      return absl::InvalidArgumentError(absl::StrCat(
          "format is ", static_cast<int>(request.format()), "; allowed: CHROME_JSON, PERFETTO"));
    }
    const MergeForm form = !is_perfetto     ? MergeForm::kChrome
                           : request.gzip() ? MergeForm::kPerfettoPlain
                                            : MergeForm::kPerfetto;
    const MergeAlignment alignment = request.alignment() == v1::TRACE_ALIGNMENT_START
                                         ? MergeAlignment::kStart
                                         : MergeAlignment::kClock;
    STEPWELL_ASSIGN_OR_RETURN(
        const std::vector<TraceRecord> traces,
        ChooseTraces(store_, trial, ReadableProjects(caller),
                     {request.trace_nos().begin(), request.trace_nos().end()}));
    const MergeSieve::Asked asked =
        request.trace_nos().empty() ? MergeSieve::Asked::kAll : MergeSieve::Asked::kThese;
    STEPWELL_ASSIGN_OR_RETURN(PlacedTraces placed,
                              PlaceTraces(store_, traces, asked, alignment, may_go_on));
    v1::MergeTracesResponse message;
    *message.mutable_placement() = placed.placement;
    STEPWELL_RETURN_IF_ERROR(Send(message, watched, writer));
    std::string gathered;
    const auto hand_over = [&](std::size_t at_least) -> absl::Status {
      if (gathered.size() < std::max<std::size_t>(at_least, 1)) return absl::OkStatus();
      message.set_data(std::exchange(gathered, {}));
      return Send(message, watched, writer);
    };
    const TakeBytes gather = [&](std::string_view bytes) {
      gathered.append(bytes);
      return hand_over(kMessageBytes);
    };
    GzipPacker packer(gather);
    const TakeBytes take =
        request.gzip() ? [&](std::string_view bytes) { return packer.Feed(bytes); } : gather;
    const auto source_of = [&](const PlacedInput& input) {
      return SourceOfStored(store_, placed.by_label.at(input.label), 0, may_go_on);
    };
    TraceCounters counters;
    const auto add_counters = [&](MergeWriter& merge) -> absl::Status {
      const ReadCall call{.deadline = SteadyTime::Now() + kCountersPatience,
                          .cancelled = [&may_go_on] { return !may_go_on().ok(); },
                          .readable_projects = ReadableProjects(caller)};
      STEPWELL_ASSIGN_OR_RETURN(
          counters, AddTraceCounters(samples_, request.trial(), call, placed.plan, merge));
      return absl::OkStatus();
    };
    const bool is_counted = !request.without_system_metrics();
    STEPWELL_ASSIGN_OR_RETURN(
        const MergeCounts counts,
        stepwell::MergeTraces(
            placed.plan, source_of, form, take,
            is_counted ? add_counters : std::function<absl::Status(MergeWriter&)>()));
    if (request.gzip()) STEPWELL_RETURN_IF_ERROR(packer.Finish());
    STEPWELL_RETURN_IF_ERROR(hand_over(1));
    message.mutable_totals()->set_event_count(counts.written);
    message.mutable_totals()->set_left_out_count(counts.left_out);
    message.mutable_totals()->set_counter_count(counters.series_count);
    message.mutable_totals()->set_counters_note(counters.note);
    return Send(message, watched, writer);
  }

  void LogRefusal(const absl::Status& status, const StoredTraceHeader& header) const {
    if (!absl::IsResourceExhausted(status)) return;
    log::Warning("trace_refused",
                 {{"bytes", header.byte_count}, {"why", Shortened(status.message(), 256)}});
  }
  // OK stays OK.
  grpc::Status Failed(const char* method, const absl::Status& status, std::int64_t epoch) {
    if (absl::IsAborted(status)) {
      state_.ReportLost(epoch);
      return GrpcError(absl::UnavailableError("another master owns the database now"));
    }
    const bool is_ours = absl::IsInternal(status) || absl::IsUnknown(status);
    if (is_ours) log::Warning("traces_failed", {{"method", method}, {"status", status.ToString()}});
    return GrpcError(status);
  }

  TraceStore& store_;
  MasterState& state_;
  const QueryReads& samples_;
  TraceCapturing& capturing_;
  StallWatch stalls_;
  ReadAdmission uploads_;
  ReadAdmission reads_;
  ReadAdmission merges_;
  const AccessControl* const access_;
};

TraceGrpcService::TraceGrpcService(TraceStore& store, MasterState& state, const QueryReads& reads,
                                   TraceCapturing& capturing, Options options)
    : impl_(std::make_unique<Impl>(store, state, reads, capturing, options)) {}
TraceGrpcService::~TraceGrpcService() = default;
grpc::Service* TraceGrpcService::service() { return impl_.get(); }

}  // namespace stepwell
