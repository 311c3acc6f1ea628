#include "client/agent/recording_notes.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "client/agent/left_recording.h"

namespace stepwell::agent {
namespace {

void TellUnfinished(const std::string& note, const std::string& path, const absl::Status& why) {
  log::Warning("trace_not_finished",
               {{"path", path}, {"note", note}, {"why", std::string(why.message())}});
}

}  // namespace

bool RecordingNotes::FinishNext(const std::function<bool()>& may_go_on) {
  const absl::StatusOr<std::vector<std::string>> names = outbox_.Recordings();
  list_due_ = names.ok() ? SteadyTime::InfiniteFuture() : SteadyTime::Now() + options_.look;
  if (!names.ok()) return false;
  std::erase_if(notes_, [&](const auto& entry) {
    return std::find(names->begin(), names->end(), entry.first) == names->end();
  });
  for (const std::string& name : *names) {
    Note& note = notes_[name];
    if (!note.due.HasPassed()) continue;
    Finish(name, note, may_go_on);
    return true;
  }
  return false;
}

SteadyTime RecordingNotes::due() const {
  SteadyTime due = list_due_;
  for (const auto& [name, note] : notes_) due = std::min(due, note.due);
  return due;
}

void RecordingNotes::Finish(const std::string& name, Note& note,
                            const std::function<bool()>& may_go_on) {
  // Also of one that cannot be removed.
  Rest(note, options_.rest);
  const absl::StatusOr<TraceJob> job = outbox_.Read(name);
  if (absl::IsInvalidArgument(job.status())) {
    if (IsNews(note.is_given_up)) tally_.GiveUpNote(name, job.status());
    return outbox_.Remove(name);
  }
  // It is gone, or cannot be read for now.
  if (!job.ok()) return Rest(note, options_.look);
  if (!options_.sends_named_files) {
    Rest(note, absl::InfiniteDuration());
    return tally_.LeaveOutside(job->path);
  }
  const absl::StatusOr<TraceJob> finished = FinishLeftRecording(*job, outbox_, may_go_on);
  if (!finished.ok()) return Judge(name, *job, finished.status(), note);
  log::Info("trace_finished", {{"was", job->path},
                               {"path", finished->path},
                               {"why", "an agent that ended or was killed left it"}});
  outbox_.Remove(name);
}

void RecordingNotes::Judge(const std::string& name, const TraceJob& job, const absl::Status& failed,
                           Note& note) {
  const bool is_absent = absl::IsAborted(failed);
  if (!is_absent) note.absent_since = SteadyTime::InfiniteFuture();
  // An agent writes it, this one as a rule; or this one ends.
  if (absl::IsUnavailable(failed) || absl::IsCancelled(failed)) return Rest(note, options_.look);
  if (is_absent) {
    note.absent_since = std::min(note.absent_since, SteadyTime::Now());
    const bool is_long = SteadyTime::Now() - note.absent_since >= options_.absent_max;
    if (!is_long || options_.is_alone) {
      // A disk may be mounted before the next one comes, which alone will say so.
      if (options_.is_alone && IsNews(note.is_told)) {
        tally_.LeaveAbsent({.path = job.path, .note = name}, failed);
      }
      return Rest(note, options_.look);
    }
  }
  const bool is_gone = absl::IsNotFound(failed);
  // Of one that was just finished the note goes next.
  if (is_gone && !options_.is_alone && !std::exchange(note.is_gone, true)) {
    return Rest(note, options_.look);
  }
  if (!is_absent && !is_gone && !absl::IsInvalidArgument(failed)) {
    if (IsNews(note.is_told)) TellUnfinished(name, job.path, failed);
    return;
  }
  if (IsNews(note.is_given_up)) {
    // Of a directory that is not there its files are not.
    tally_.GiveUp({.path = job.path, .note = name}, failed, is_gone || is_absent);
  }
  outbox_.Remove(name);
}

}  // namespace stepwell::agent
