// RankWriter: one training process, served: its rings are drained into frames, the master's wishes
// reach its control word, its end becomes a Close. Confined to the agent's loop.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto writer, RankWriter::Open(std::move(directory), identity, context));
//   writer->Visit(nullptr);                   // where IsQuiet says no, and each 500 ms
//   if (writer->done()) ...                   // the master holds all of it
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/agent/anchor_keeper.h"
#include "client/agent/process_sampler.h"
#include "client/agent/rank_capture.h"
#include "client/agent/rank_trace.h"
#include "client/agent/recorded_samples.h"
#include "client/agent/recorded_writer.h"
#include "client/agent/served_writer.h"

namespace stepwell::agent {

class RankWriter {
 public:
  static absl::StatusOr<std::unique_ptr<RankWriter>> Open(FileDescriptor directory,
                                                          WriterIdentity identity,
                                                          const ServeContext& context);

  // Drains, seals what there is, tells the recorder how far things are. Blocks as the disk does. With
  // `selection` the process itself is sampled as well.
  void Visit(const SensorSelection* selection);
  // The agent is about to leave: with the next visit the process is asked once more, and what is left
  // to tell of it is told; it is sampled no more.
  void EndSampling() { sampling_ended_ = true; }
  // A visit with `selection` would find nothing to do but see that a worker died.
  bool IsQuiet(const SensorSelection* selection, absl::Duration now);
  // The part of a visit that a recorder waits for in close().
  void SettleClosing();

  // The end of one of its processes is on its way to the master.
  bool closing() const;
  // A process of it lives and has not closed its recorder.
  bool live() const { return live_; }
  // It was over when this agent first saw it, in this visit, and a moment ago it was not: a trial of
  // 50 ms. The machine is as it was then.
  bool ended_just_now() const { return ended_just_now_; }
  bool done() const { return served_->done(); }
  absl::Duration done_at() const { return done_at_; }
  // Nothing is left to send now, be it that the recorder lives on.
  bool settled() const;
  // Of the process that opened it, while that records; 0 = not known.
  pid_t pid() const { return pid_; }
  std::int32_t last_batch() const { return spool::BatchOfLastStep(last_step_); }
  const WriterIdentity& identity() const { return served_->identity(); }
  ServedWriter& served() const { return *served_; }

 private:
  RankWriter(std::unique_ptr<ServedWriter> served, std::unique_ptr<RecordedWriter> recorded,
             const ServeContext& context);
  absl::Status DrainAndSeal(const SensorSelection* selection);
  bool HasEndedJustNow() const;
  absl::Status TellEnd(bool ended);
  void FlushTrace(RankTrace::When clock);
  std::int64_t TraceTimeNs(std::int64_t wall_time_us) const;
  void EndTrace();
  void SampleProcess(const WriterStatus& status, const SensorSelection& selection);
  void FollowDirectives();
  void FollowCapture();
  void TellRecorder();

  const std::unique_ptr<ServedWriter> served_;
  const std::unique_ptr<RecordedWriter> recorded_;
  const Clock& clock_;
  ClockOffset& clock_offset_;
  const std::unique_ptr<RankTrace> trace_;  // null: none is wanted
  const bool may_record_traces_;
  const bool may_capture_;
  RecordedSamples samples_;
  const std::function<void(const Uuid& writer, const EpochLog& epochs)> note_epochs_;
  RankCapture capture_;
  ProcessSampler process_;
  const bool same_boot_;
  AnchorKeeper anchors_;
  bool live_ = true;
  bool seen_alive_ = false;
  bool visited_ = false;
  bool was_selected_ = false;  // at the last visit
  bool ended_just_now_ = false;
  bool sampling_ended_ = false;
  std::uint64_t last_sign_ns_ = 0;
  pid_t pid_ = 0;
  pid_t own_pid_ = 0;            // as it says itself: for traces
  NativeCapture::Facts native_;  // as of the last look
  // Forked children that come now open writers of their own.
  bool end_told_ = false;
  std::uint64_t last_step_ = 0;
  // Once that process closed and all of its own is sealed: up to here.
  std::optional<std::uint64_t> own_sequence_;
  bool is_trace_ended_ = false;
  bool own_told_ = false;                 // that it is stored, though workers live on
  std::optional<std::uint32_t> control_;  // as this agent stored it
  absl::Duration done_at_ = absl::InfiniteDuration();
  absl::Duration trouble_logged_ = -absl::InfiniteDuration();
};

}  // namespace stepwell::agent
