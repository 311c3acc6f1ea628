// TrialSampler: this machine's sampling for one trial of one master: which attempt it is for, what
// it reads and how often, when it begins and ends. It stands between the ranks that are live here
// and SamplerWriter. Confined to the agent's loop.
//
//   TrialSampler sampler({.key = key, .selection = options.selection}, home);
//   sampler.Visit(live, /*trial_count=*/2);     // each visit, after the ranks'
//   if (sampler.ended()) ...                    // the last rank is gone and all is in the spool
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/agent/ended_samplers.h"
#include "client/agent/live_trial.h"
#include "client/agent/sampler_writer.h"
#include "client/agent/writer_finder.h"

namespace stepwell::agent {

// What a sampler needs of the root that its writers lie in; all of it outlives the sampler.
struct SamplerHome {
  int format_directory;
  WriterFinder& finder;
  EndedSamplers& ended;
  // Of the writers that go to this server.
  std::function<ServeContext(const std::string& server)> context_for;
};

class TrialSampler {
 public:
  struct Options {
    TrialKey key;
    // As writer.json names it: "" = the agent's own default.
    std::string server;
    // Samples also while no rank of the trial lives, until End.
    bool stays = false;
    // Empty: that of the newest live rank.
    std::string attempt_key;
    std::string token;
    // What the trial does not say itself.
    std::map<std::string, std::string> placement;
    SensorSelection selection;
    // Looks at the containers of the recording processes, not at its own.
    bool of_processes = false;
  };

  TrialSampler(Options options, SamplerHome home);

  // One that an agent left by a crash is taken up again; false: it is not this one's to go on with.
  bool TakesUp(const FoundWriter& found, const LiveTrial& live) const;
  absl::Status TakeUp(FoundWriter found, const LiveTrial& live);

  // An earlier agent's sampler of this attempt ended so: the newest counts.
  void NoteEnded(const std::string& attempt_key, const EndedTicks& ended);

  // `trial_count`: live trials here, this one included.
  void Visit(const LiveTrial& live, int trial_count);
  // Takes a last tick with the next visit; none follows.
  void End() { ending_ = true; }
  // Nothing is held and nothing will come.
  bool ended() const { return sampler_ == nullptr && !stays(); }
  bool stays() const { return options_.stays && !ending_; }
  // Nothing is due before its next tick, and that is far off.
  bool may_rest() const;
  // It goes on as it is, and its next tick is far off.
  bool is_calm() const;

  // What is sampled now, directives included; null = nothing.
  const SensorSelection* selection() const { return sampler_ == nullptr ? nullptr : &selection_; }
  // Null = none.
  ServedWriter* served() const { return sampler_ == nullptr ? nullptr : &sampler_->served(); }

 private:
  bool IsWanted(const LiveTrial& live) const;
  std::string WantedAttemptKey(const LiveTrial& live) const;
  SensorSelection WantedSelection(const LiveTrial& live);
  SamplerWriter::Surroundings SurroundingsOf(const LiveTrial& live) const;
  void Start(const LiveTrial& live);
  absl::Status Open(FoundWriter found, const LiveTrial& live, std::optional<EndedTicks> after);
  void FollowAttempt(const LiveTrial& live);
  // kResourceExhausted and the like, told in the log; kUnavailable: it failed just before.
  absl::StatusOr<FoundWriter> MakeDirectory(const LiveTrial& live, const ServeContext& context);
  // Once a minute.
  void LogUnservable(const absl::Status& why, const Clock& clock);

  const Options options_;
  const SamplerHome home_;
  std::unique_ptr<SamplerWriter> sampler_;
  bool ending_ = false;
  // Of the attempt that is sampled first here.
  std::string ended_attempt_key_;
  std::optional<EndedTicks> ended_ticks_;
  // When the rank opened whose attempt is sampled: an older attempt that outlives a newer one does
  // not take the sampler back.
  std::int64_t attempt_opened_us_ = INT64_MIN;
  SamplingWish wish_;
  SensorSelection selection_;
  int trial_count_ = 1;
  const std::shared_ptr<RecordingProcesses> processes_ = std::make_shared<RecordingProcesses>();
  absl::Duration logged_ = -absl::InfiniteDuration();
  absl::Duration tried_at_ = -absl::InfiniteDuration();
};

}  // namespace stepwell::agent
