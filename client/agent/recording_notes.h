// RecordingNotes: the notes of traces that are being recorded, for the thread of TraceSender: what nobody writes any more gets its
// name, and a note with which it is uploaded. One that is still written, or whose directory is not there, is looked at again
// each minute; one that cannot be finished, as on a full disk, each ten, and told once. Confined to that thread; blocks as the disk does.
//
//   while (notes.FinishNext([&] { return !is_stopping; })) ...   // one at a time: others have their turn between
//   wait(notes.due().Left())
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "client/agent/trace_job.h"
#include "client/agent/trace_outbox.h"
#include "client/agent/trace_tally.h"

namespace stepwell::agent {

class RecordingNotes {
 public:
  struct Options {
    bool sends_named_files = true;  // as TraceSender::Options
    absl::Duration look = absl::Minutes(1);
    absl::Duration rest = absl::Minutes(10);
    // So long a directory may be away.
    absl::Duration absent_max = absl::Minutes(10);
    // No agent or recorder writes there: what is gone at the first look is gone.
    bool is_alone = false;
  };

  // `outbox` and `tally` outlive it.
  RecordingNotes(const TraceOutbox& outbox, TraceTally& tally, Options options)
      : outbox_(outbox), tally_(tally), options_(options) {}

  // False: none was due. Asked between parts, `may_go_on` says whether the agent stays.
  bool FinishNext(const std::function<bool()>& may_go_on);
  // When one is to be looked at again.
  SteadyTime due() const;

 private:
  struct Note {
    SteadyTime due = {};
    SteadyTime absent_since = SteadyTime::InfiniteFuture();
    bool is_gone = false;  // its file, at the last look
    bool is_told = false;
    bool is_given_up = false;
  };

  void Finish(const std::string& name, Note& note, const std::function<bool()>& may_go_on);
  // What is to be said of it is said once.
  static bool IsNews(bool& is_said) { return !std::exchange(is_said, true); }
  void Judge(const std::string& name, const TraceJob& job, const absl::Status& failed, Note& note);
  static void Rest(Note& note, absl::Duration rest) { note.due = SteadyTime::Now() + rest; }

  const TraceOutbox& outbox_;
  TraceTally& tally_;
  const Options options_;
  std::map<std::string, Note> notes_;
  // Of all, where they could not be listed.
  SteadyTime list_due_ = SteadyTime::InfiniteFuture();
};

}  // namespace stepwell::agent
