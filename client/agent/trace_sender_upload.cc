// TraceSender's way of one trace to its master: prepared, sent, and what the answer says of another try.
#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "client/agent/trace_sender.h"

namespace stepwell::agent {
namespace {

// Files that are open, and perhaps packed, for their next try.
constexpr std::size_t kPreparedMax = 8;
// As the wire takes it.
constexpr std::size_t kMachineBytesMax = 128;

// Which file it is and what is in it, as far as a look tells.
std::string StateOf(const std::string& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return "";
  return absl::StrCat(found.st_dev, " ", found.st_ino, " ", found.st_size, " ",
                      found.st_mtim.tv_sec, " ", found.st_mtim.tv_nsec);
}

v1::TrialRef RefOf(const WriterIdentity& writer) {
  v1::TrialRef trial;
  absl::string_view text = writer.trial;
  std::int64_t id = 0;
  if (absl::ConsumePrefix(&text, "id:") && absl::SimpleAtoi(text, &id)) {
    trial.set_trial_id(id);
  } else {
    trial.set_project(writer.project);
    trial.set_external_id(writer.trial);
  }
  return trial;
}

}  // namespace

absl::Status TraceSender::Prepare(Sending& sending) const {
  const TraceJob& job = sending.job;
  const std::string state = StateOf(job.path);
  if (sending.prepared && sending.prepared_of == state) return absl::OkStatus();
  sending.prepared.reset();
  sending.prepared_of = state;
  STEPWELL_RETURN_IF_ERROR(sent_outbox_.CheckFile(job.path));
  absl::StatusOr<traces::PreparedTrace> prepared =
      traces::PrepareTrace(job.path, {.rank = job.writer.rank,
                                      .machine = CleanText(options_.machine, kMachineBytesMax),
                                      .looks_inside = false,
                                      .packed_of_max = options_.packed_of_max,
                                      .names_session = job.first_batch < 0 && job.last_batch < 0,
                                      .believes_our_ep0 = false});
  // It was there just now.
  if (absl::IsNotFound(prepared.status())) {
    return absl::FailedPreconditionError(prepared.status().message());
  }
  if (!prepared.ok()) return prepared.status();
  sending.prepared = *std::move(prepared);
  v1::TraceHeader& header = sending.prepared->header;
  header.set_writer(job.writer.writer.ToBytes());
  const std::int32_t epoch = job.epoch >= 0 || header.has_epoch() ? job.epoch : EpochOf(job);
  if (epoch >= 0) header.set_epoch(epoch);
  if (job.first_batch >= 0) header.set_first_batch(job.first_batch);
  if (job.last_batch >= 0) header.set_last_batch(job.last_batch);
  return absl::OkStatus();
}

std::int32_t TraceSender::EpochOf(const TraceJob& job) const {
  const absl::MutexLock lock(&mu_);
  const auto known = epochs_.find(job.writer.writer);
  return job.last_batch < 0 || known == epochs_.end() ? -1 : known->second.EpochAt(job.last_batch);
}

void TraceSender::BoundPrepared() {
  std::int64_t bytes = 0;
  std::vector<Sending*> held;
  const auto bytes_of = [](const Sending* each) { return each->prepared->header.byte_count(); };
  for (auto& [name, each] : sendings_) {
    if (!each.prepared) continue;
    held.push_back(&each);
    bytes += each.prepared->header.byte_count();
  }
  // The smallest go: they are the ones that are soon prepared anew. The largest stays, however large, and costs no other its
  // place.
  std::sort(held.begin(), held.end(),
            [&](const Sending* a, const Sending* b) { return bytes_of(a) > bytes_of(b); });
  if (!held.empty()) bytes -= bytes_of(held.front());
  while (held.size() > 1 && (held.size() > kPreparedMax || bytes > options_.prepared_bytes_max)) {
    bytes -= bytes_of(held.back());
    held.back()->prepared.reset();
    held.pop_back();
  }
}

absl::StatusOr<v1::UploadTraceResponse> TraceSender::Upload(const std::string& server,
                                                            Sending& sending) {
  STEPWELL_RETURN_IF_ERROR(Prepare(sending));
  const WriterIdentity& writer = sending.job.writer;
  const std::string token =
      options_.shows_writers_token && !writer.renews_token ? writer.token : std::string();
  const auto call = [&](const v1::TraceUpload& upload, const auto& next) {
    ++call_count_;
    return calls_->UploadTo(server, token, upload, [&](v1::TracePart& part) {
      // In memory it would wait behind all of this file.
      WriteKept();
      if (IsStopping() || !next(part)) return false;
      ++progress_;
      return true;
    });
  };
  // Whoever says to come again is come to when this job's turn comes.
  traces::SendPatience none;
  return traces::SendTrace(call, RefOf(sending.job.writer), *sending.prepared, none);
}

TraceSender::Outcome TraceSender::Judge(const absl::Status& failed, Sending& sending) {
  const bool is_prepared = sending.prepared.has_value();
  switch (failed.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kResourceExhausted:  // a cap's, which the trial shows
    case absl::StatusCode::kUnimplemented:      // an older master
      return Outcome::kOver;
    // Of the file. Of its trial: the agent may not have opened its writer yet.
    case absl::StatusCode::kNotFound:
      if (!is_prepared) return Outcome::kOver;
      break;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kOutOfRange:
      sending.prepared.reset();  // it changed meanwhile
      break;
    case absl::StatusCode::kFailedPrecondition:
      break;
    // A token that is wrong or was changed among them: the next agent may have the right one.
    default:
      sending.doubted_since.reset();
      return Outcome::kLater;
  }
  if (!sending.doubted_since) sending.doubted_since = SteadyTime::Now();
  sending.doubt = std::string(failed.message());
  return SteadyTime::Now() - *sending.doubted_since < options_.unknown_max ? Outcome::kLater
                                                                           : Outcome::kOver;
}

}  // namespace stepwell::agent
