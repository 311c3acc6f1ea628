#include "client/agent/trace_sender.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client/agent/server_address.h"

namespace stepwell::agent {
namespace {

// The training's own threads come first.
constexpr int kNiceness = 10;
constexpr absl::Duration kSweepInterval = absl::Minutes(10);
// Between a file and its note lie milliseconds.
constexpr absl::Duration kSweepAge = absl::Minutes(1);

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string LastOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// It was made for that file, and nobody looks there.
bool HasOwnFolder(const std::string& path) {
  return absl::StartsWith(LastOf(FolderOf(path)), TraceOutbox::kFolderOfOne);
}

void RemoveFile(const std::string& path) {
  unlink(path.c_str());
  // Where it holds something else it stays.
  if (HasOwnFolder(path)) rmdir(FolderOf(path).c_str());
}

// For certain.
bool IsEmpty(const absl::StatusOr<std::vector<std::string>>& names) {
  return names.ok() && names->empty();
}

RecordingNotes::Options OfRecordings(const TraceSender::Options& options) {
  RecordingNotes::Options of = options.recordings;
  of.sends_named_files = options.sends_named_files;
  of.absent_max = options.unknown_max;
  return of;
}

}  // namespace

TraceSender::TraceSender(int format_directory, Options options, Resolve resolve,
                         std::unique_ptr<TraceCalls> calls)
    : options_(std::move(options)),
      resolve_(std::move(resolve)),
      calls_(std::move(calls)),
      outbox_(format_directory),
      sent_outbox_(format_directory),
      recordings_(sent_outbox_, tally_, OfRecordings(options_)) {}

void TraceSender::EndStalledCall() {
  const std::uint64_t now = progress_ + call_count_;
  if (std::exchange(seen_progress_, now) != now) moved_ = SteadyTime::Now();
  if (SteadyTime::Now() - moved_ < options_.stall_max) return;
  moved_ = SteadyTime::Now();
  calls_->CancelCall();
}

void TraceSender::Tend() {
  EndStalledCall();
  // A folder that changed just now is looked through once more, as is one that held the last note.
  if (!outbox_.MayHaveNew() ||
      (IsEmpty(outbox_.Names()) && IsEmpty(outbox_.Recordings()) && outbox_.OwnFolders().empty())) {
    return;
  }
  const absl::MutexLock lock(&mu_);
  has_news_ = true;
  StartLocked();
}

absl::Status TraceSender::Leave(const TraceJob& job) {
  absl::Status left = outbox_.Leave(job);
  if (!left.ok()) {
    log::Warning("trace_not_uploaded", {{"path", job.path}, {"why", std::string(left.message())}});
  }
  return left;
}

std::function<void()> TraceSender::NoteRecording(const TraceJob& job) {
  const absl::StatusOr<std::string> note = outbox_.LeaveRecording(job);
  if (!note.ok()) {
    log::Warning("trace_not_noted",
                 {{"path", job.path}, {"why", std::string(note.status().message())}});
    return {};
  }
  return [this, name = *note] { outbox_.Remove(name); };
}

void TraceSender::StartLocked() {
  if (is_stopping_ || is_started_) return;
  is_started_ = true;
  worker_ = Worker("agent-traces", [this] { Run(); });
}

void TraceSender::Keep(const WriterIdentity& writer, CapturedTrace trace) {
  {
    const absl::MutexLock lock(&mu_);
    if (!is_stopping_ && kept_.size() < kKeptMax) {
      kept_.emplace_back(writer, std::move(trace));
      has_news_ = true;
      return StartLocked();
    }
  }
  trace.fail(absl::ResourceExhaustedError("too many wait to be written, or the agent is leaving"));
}

void TraceSender::NoteEpochs(const Uuid& writer, const EpochLog& epochs) {
  const absl::MutexLock lock(&mu_);
  const auto [known, is_new] = epochs_.insert_or_assign(writer, epochs);
  if (!is_new) return;
  epoch_writers_.push_back(writer);
  if (epoch_writers_.size() <= kEpochsMax) return;
  // What comes of that one later has no epoch.
  epochs_.erase(epoch_writers_.front());
  epoch_writers_.pop_front();
}

void TraceSender::WriteKept() {
  while (true) {
    std::pair<WriterIdentity, CapturedTrace> next;
    {
      const absl::MutexLock lock(&mu_);
      if (kept_.empty()) return;
      next = std::move(kept_.front());
      kept_.pop_front();
    }
    auto& [writer, trace] = next;
    const std::string bytes = trace.write();
    const absl::Status room = CheckRoom(bytes.size());
    const absl::StatusOr<std::string> path =
        room.ok() ? sent_outbox_.KeepFile(trace.name, bytes) : room;
    absl::Status left = path.status();
    if (left.ok()) {
      left = sent_outbox_.Leave({.writer = writer,
                                 .path = *path,
                                 .epoch = trace.epoch,
                                 .first_batch = trace.first_batch,
                                 .last_batch = trace.last_batch,
                                 .removes_file = true});
      if (!left.ok()) RemoveFile(*path);
    }
    if (left.ok()) {
      has_captures_ = true;
      continue;
    }
    log::Warning("trace_not_kept", {{"name", trace.name}, {"why", std::string(left.message())}});
    trace.fail(left);
  }
}

absl::Status TraceSender::CheckRoom(std::size_t bytes) const {
  if (options_.kept_bytes_max == INT64_MAX) return absl::OkStatus();
  const TraceOutbox::Room room = sent_outbox_.RoomOfKept();
  const std::int64_t allowed = std::min(options_.kept_bytes_max, room.free_bytes / 20);
  const auto taken = static_cast<std::int64_t>(bytes) + TraceOutbox::kNoteBytesMax;
  if (room.kept_bytes + taken <= allowed) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("captures that no master has taken yet would take ",
                   (room.kept_bytes + taken) >> 10, " KiB of at most ", allowed >> 10));
}

void TraceSender::Stop() {
  {
    const absl::MutexLock lock(&mu_);
    is_stopping_ = true;
  }
  calls_->Cancel();
  worker_.Join();
}

bool TraceSender::is_done() const {
  const absl::MutexLock lock(&mu_);
  return !has_news_ && !is_sending_ && !is_waiting_;
}

bool TraceSender::IsStopping() const {
  const absl::MutexLock lock(&mu_);
  return is_stopping_;
}

void TraceSender::Run() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
  while (AwaitWork()) {
    WriteKept();
    if (sweep_due_.HasPassed()) SweepFiles();
    const bool is_waiting = SendAll();
    CountRefused();
    // One, and what it left is sent, as is what was captured meanwhile, before the next.
    const bool is_one_finished = !has_captures_ && recordings_.FinishNext([this] {
      WriteKept();
      return !IsStopping();
    });
    const absl::MutexLock lock(&mu_);
    has_news_ = has_news_ || is_one_finished;
    is_waiting_ = is_waiting;
    is_sending_ = false;
  }
  // What it was handed is for the next agent.
  WriteKept();
}

bool TraceSender::AwaitWork() {
  const absl::MutexLock lock(&mu_);
  const auto happened = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_stopping_ || has_news_;
  };
  mu_.AwaitWithTimeout(absl::Condition(&happened),
                       std::min({recordings_.due().Left(),
                                 is_waiting_ ? options_.retry.first : absl::InfiniteDuration(),
                                 has_aging_ ? options_.kept_age_max : absl::InfiniteDuration()}));
  if (is_stopping_) return false;
  has_news_ = false;
  is_sending_ = true;
  return true;
}

absl::StatusOr<std::vector<std::string>> TraceSender::NamesInTurn() const {
  STEPWELL_ASSIGN_OR_RETURN(std::vector<std::string> names, sent_outbox_.Names());
  std::stable_partition(names.begin(), names.end(), [this](const std::string& name) {
    const auto known = sendings_.find(name);
    if (known != sendings_.end()) return sent_outbox_.Holds(known->second.job.path);
    const absl::StatusOr<TraceJob> job = sent_outbox_.Read(name);
    return job.ok() && sent_outbox_.Holds(job->path);
  });
  return names;
}

void TraceSender::SweepFiles() {
  sweep_due_ = SteadyTime::Now() + kSweepInterval;
  // Before the notes are read: one that comes meanwhile is of a folder that is younger.
  const std::vector<std::string> folders = sent_outbox_.OwnFolders(kSweepAge);
  if (folders.empty()) return;
  const absl::StatusOr<std::vector<std::string>> names = sent_outbox_.Names();
  if (!names.ok()) return;
  std::set<std::string> named;
  for (const std::string& name : *names) {
    const absl::StatusOr<TraceJob> job = sent_outbox_.Read(name);
    // Which it names is not known.
    if (!job.ok() && !absl::IsInvalidArgument(job.status()) && !absl::IsNotFound(job.status())) {
      return;
    }
    // By the folder's name: where a spool was copied from is another place, and its file may not have come along yet.
    if (job.ok()) named.insert(LastOf(FolderOf(job->path)));
  }
  for (const std::string& folder : folders) {
    if (named.contains(LastOf(folder))) continue;
    log::Warning("trace_swept", {{"path", folder}, {"why", "an agent that was killed left it"}});
    std::error_code failed;
    std::filesystem::remove_all(folder, failed);
  }
}

bool TraceSender::SendAll() {
  has_captures_ = has_aging_ = false;
  const absl::StatusOr<std::vector<std::string>> names = NamesInTurn();
  if (!names.ok()) return true;
  // Another's hand took some.
  const auto is_gone = [&](const std::string& name) {
    return std::find(names->begin(), names->end(), name) == names->end();
  };
  std::erase_if(sendings_, [&](const auto& entry) { return is_gone(entry.first); });
  std::erase_if(unusable_, is_gone);
  bool is_waiting = false;
  for (const std::string& name : *names) {
    if (IsStopping()) return true;
    WriteKept();
    // Their turn is next.
    if (has_captures_) return true;
    auto known = sendings_.find(name);
    if (known == sendings_.end()) {
      absl::StatusOr<TraceJob> job = sent_outbox_.Read(name);
      if (!job.ok()) {
        // It is gone, or cannot be read for now.
        if (!absl::IsInvalidArgument(job.status())) continue;
        if (unusable_.insert(name).second) tally_.GiveUpNote(name, job.status());
        sent_outbox_.Remove(name);
        continue;
      }
      known = sendings_.emplace(name, Sending{*std::move(job), {}, Backoff(options_.retry)}).first;
    }
    if (IsTooOld(known->second)) {
      GiveUp(name, known->second, absl::DeadlineExceededError("no master took it in time"));
      sent_outbox_.Remove(name);
      sendings_.erase(known);
      continue;
    }
    if (!IsSent(known->second)) continue;
    if (resolve_(known->second.job.writer.server) == kOffline) {
      has_aging_ = has_aging_ || options_.kept_age_max != absl::InfiniteDuration();
      continue;
    }
    if (!known->second.due.HasPassed()) {
      is_waiting = true;
      continue;
    }
    if (Send(name, known->second) == Outcome::kLater) {
      is_waiting = true;
      continue;
    }
    sent_outbox_.Remove(name);
    sendings_.erase(known);
  }
  return is_waiting;
}

void TraceSender::CountRefused() {
  std::uint64_t count = 0;
  std::string why;
  for (const auto& [name, sending] : sendings_) {
    if (!sending.doubted_since) continue;
    ++count;
    why = sending.doubt;
  }
  tally_.SetRefused(count, why);
}

bool TraceSender::IsSent(Sending& sending) {
  if (options_.sends_named_files || sent_outbox_.Holds(sending.job.path)) return true;
  if (!std::exchange(sending.is_told, true)) tally_.LeaveOutside(sending.job.path);
  return false;
}

bool TraceSender::IsTooOld(const Sending& sending) const {
  struct stat found {};
  return options_.kept_age_max != absl::InfiniteDuration() &&
         sent_outbox_.Holds(sending.job.path) && lstat(sending.job.path.c_str(), &found) == 0 &&
         absl::ToUnixMicros(absl::Now()) -
                 absl::ToUnixMicros(absl::TimeFromTimespec(found.st_mtim)) >=
             absl::ToInt64Microseconds(options_.kept_age_max);
}

void TraceSender::GiveUp(const std::string& name, const Sending& sending, const absl::Status& why) {
  // What the master does not know is no file that is gone.
  const bool is_gone = absl::IsNotFound(why) && !sending.prepared;
  tally_.GiveUp({.path = sending.job.path, .note = name}, why, is_gone);
  // Nobody else knows of it.
  if (sending.job.removes_file && HasOwnFolder(sending.job.path)) RemoveFile(sending.job.path);
}

TraceSender::Outcome TraceSender::Send(const std::string& name, Sending& sending) {
  const std::string server = resolve_(sending.job.writer.server);
  const absl::StatusOr<v1::UploadTraceResponse> stored = Upload(server, sending);
  if (stored.ok()) {
    log::Info("trace_uploaded", {{"path", sending.job.path},
                                 {"trial", stored->trial_id()},
                                 {"trace", stored->trace_no()},
                                 {"bytes", stored->received_bytes()}});
    tally_.Uploaded();
    if (sending.job.removes_file) RemoveFile(sending.job.path);
    return Outcome::kOver;
  }
  if (IsStopping()) return Outcome::kLater;
  if (Judge(stored.status(), sending) == Outcome::kOver) {
    GiveUp(name, sending, stored.status());
    return Outcome::kOver;
  }
  BoundPrepared();
  sending.due = SteadyTime::Now() + sending.backoff.NextDelay();
  return Outcome::kLater;
}

}  // namespace stepwell::agent
