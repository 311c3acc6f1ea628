// ServedRoot: all writers below one root: found, visited, sent to the masters they asked for, and
// removed when their time is over; and the machine's sampling for their trials. It stands between
// the agent's loop and the writers. Confined to that loop.
//
//   ServedRoot root(options, std::move(place), face, clock, {.on_answer = [&] { loop.Wake(); }});
//   root.VisitWriters();                      // each frame interval
//   root.CollectTrials(trials);
//   root.VisitSamplers(trials);
//   root.TendLinks();
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/agent/agent_life.h"
#include "client/agent/agent_lock.h"
#include "client/agent/agent_options.h"
#include "client/agent/ended_samplers.h"
#include "client/agent/file_owner.h"
#include "client/agent/link_note.h"
#include "client/agent/live_trial.h"
#include "client/agent/look_hurry.h"
#include "client/agent/master_links.h"
#include "client/agent/private_root.h"
#include "client/agent/process_reader.h"
#include "client/agent/rank_writer.h"
#include "client/agent/trace_sender.h"
#include "client/agent/trial_sampler.h"
#include "client/agent/trial_tokens.h"
#include "client/agent/writer_finder.h"

namespace stepwell::agent {

class ServedRoot {
 public:
  struct Place {
    FileDescriptor format_directory;
    // Of another user: all that is done with its files is done as that one.
    std::optional<FileOwner> owner = {};
    // Held as long as the root is served, where the agent's own is another.
    std::optional<AgentLock> lock = {};
    std::size_t writer_count_max = 1024;
    int stream_count_max = 16;
    // Open at once; the rest is drained at later visits.
    std::size_t ring_count_max = SIZE_MAX;
    // Of another user's: the agent's own, for what is captured. None: nothing is.
    std::optional<FileDescriptor> captures = {};
    // Of all such users; null: there are no others.
    std::shared_ptr<CaptureRoom> capture_room = {};
  };

  // Called on a stream's or a sampler's thread; must not block.
  struct Callbacks {
    std::function<void()> on_answer = [] {};
    std::function<void()> on_ticks = [] {};
  };

  // `clock` outlives the root.
  ServedRoot(const AgentOptions& options, Place place, AgentFace face, const Clock& clock,
             Callbacks callbacks);
  ~ServedRoot();

  // In this order, at each visit. Blocks as the disk does.
  void VisitWriters();
  void CollectTrials(std::set<TrialKey>& live) const;
  // Those that tick seldom may be left out for a while.
  void VisitSamplers(const std::set<TrialKey>& live);
  void TendLinks();
  // After the streams were woken: the frames of this visit are on their way.
  void SyncSpools();
  // The part of a visit that recorders wait for in close().
  void SettleClosing();
  // Some recorder waits for that.
  bool has_closing() const;
  // Whoever records has recorded nothing since the last visit, and nothing is due: a visit would find
  // nothing but deaths of workers.
  bool is_quiet() const;
  // Nobody records, all is delivered and no tick is due within a second: what is new says so itself.
  bool may_rest() const;
  // Its samplers go on as they are, and none ticks more than once a second.
  bool are_samplers_calm() const;

  // Something new lies in this root or in another.
  void OnArrival();
  // Between visits, where it is due: whether writers came that the next one will serve.
  bool LookInHurry();
  const LookHurry& hurry() const { return hurry_; }
  // The next visit looks for writers, whatever the directory looks like.
  void LookAgain() { finder_.LookAgain(); }
  // Samplers take a last tick with the next visit; none begins after it.
  void EndSampling();
  // What a stopping agent does last.
  void TendAll();
  void StopStreams();
  // What nobody will be told again: no agent opens what is done.
  void RemoveDone();
  // Its directory was removed.
  bool gone() const;
  // Of a private root, as RemovePrivateRoot; `path` is the root's.
  void RemovePlace(const std::string& path) {
    (void)RemovePrivateRoot(path, format_directory_.get());
  }

  // As of the last visit.
  AgentLife::Facts facts() const;
  struct Summary {
    int writer_count = 0;
    int acked_count = 0;    // closed, and the master holds all of it
    int refused_count = 0;  // the master will not have it
    std::int64_t unacked_bytes = 0;
    std::string refusal;  // of one of them: REASON: text
    TraceTally::Counts traces;
  };
  void AddTo(Summary& summary) const;

 private:
  struct Rank {
    TrialKey key;
    std::unique_ptr<RankWriter> writer;
  };
  ServeContext ContextFor(const std::string& server);
  // What is shown for its trial; null = what its identity says.
  std::shared_ptr<TrialToken> TokenFor(const WriterIdentity& writer);
  std::unique_ptr<TraceSender> MakeTraces();
  TrialTokens::Options TokenOptions(std::function<void()> on_change) const;
  // Null: the process is not sampled.
  const SensorSelection* SelectionFor(const Rank& rank) const;
  // All who came are served, and who comes says so itself.
  bool awaits_nobody() const;
  TrialKey KeyOf(const WriterIdentity& who) const;
  void ServeNew();
  bool FindNew();
  void ServeRank(FoundWriter found);
  void LeaveDone(const FoundWriter& found);
  // Those that cannot be delivered now leave their places to those that should not wait.
  void MakeRoom();
  std::size_t PlacesToFree();
  void SetAside(const std::string& name, const ServedWriter& served);
  // Those that found no room are served again later.
  void NoteUnserved(const std::string& name, const absl::Status& why);
  void CollectLive();
  void MakeSampler(const TrialKey& key, const LiveTrial& live);
  void AddSampler(TrialSampler::Options sampler);
  // Where the ticks of earlier agents ended, for the samplers that go on.
  void NoteEnded(const FoundWriter& found);
  void TellEnded();
  void ServeFoundSamplers();
  absl::Status ServeSampler(FoundWriter found);
  // The bound is of all spools of the root together.
  void ShareSpool();
  void RemoveOlder(absl::Duration age);
  std::vector<ServedWriter*> AllServed() const;
  const LiveTrial& LiveOf(const TrialKey& key) const;

  const AgentOptions& options_;  // the agent's
  const FileDescriptor format_directory_;
  // Not each file system counts the links of a directory.
  const bool has_link_count_;
  const std::optional<FileOwner> owner_;
  const std::optional<AgentLock> lock_;
  const std::optional<FileDescriptor> captures_;
  const AgentFace face_;
  const Clock& clock_;
  const std::function<void()> on_ticks_;
  Spool::Options spool_;
  ProcessReader processes_;
  // Before all that show them.
  TrialTokens tokens_;
  // Before all that is on them.
  MasterLinks links_;
  // Other users' notes name paths: of theirs what is captured alone, in a folder that they do not reach, as the agent itself.
  std::unique_ptr<TraceSender> traces_;
  const std::optional<FileOwner> traces_owner_;
  LinkNote link_note_;
  RingBudget rings_;
  const std::shared_ptr<CaptureRoom> capture_room_;
  WriterFinder finder_;
  LookHurry hurry_;
  std::vector<FoundWriter> arrived_;  // found between visits
  EndedSamplers ended_;
  std::map<std::string, Rank> ranks_;  // by directory name
  std::map<TrialKey, LiveTrial> live_;
  // What of it samplers must see at once, and whether they have not.
  struct LiveMark {
    std::size_t rank_count = 0;
    std::int64_t newest_opened_us = 0;
    bool operator==(const LiveMark&) const = default;
  };
  LiveMark live_mark_;
  bool has_live_changed_ = false;
  std::map<TrialKey, std::unique_ptr<TrialSampler>> samplers_;
  // Of earlier agents; wait for the first visit of the ranks that were found with them.
  std::vector<FoundWriter> samplers_found_;
  struct EndedSampler {
    TrialKey key;
    std::string attempt_key;
    EndedTicks ticks;
  };
  std::vector<EndedSampler> samplers_ended_;  // as found since the last visit
  bool sampling_ended_ = false;
  // Directories that only wait for their time to go.
  std::map<std::string, absl::Duration> left_since_;
  std::vector<std::string> roomless_;
  absl::Duration roomless_at_ = absl::ZeroDuration();
  bool any_seen_ = false;  // a process that records, or did
  std::uint64_t found_count_ = 0;
  absl::Duration rotated_at_ = absl::ZeroDuration();
  absl::Duration bound_read_at_ = -absl::InfiniteDuration();
  std::int64_t spool_bytes_max_ = 0;  // as last read: of all spools
  absl::Duration crowded_logged_ = -absl::InfiniteDuration();
};

}  // namespace stepwell::agent
