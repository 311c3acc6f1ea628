// SamplerWriter: the machine's sampler as a writer of a trial: ticks of system metrics, each with
// the batch that the trial was at, in a spool of their own. Confined to the agent's loop.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto sampler, SamplerWriter::Open(std::move(dir), who, settings, context));
//   sampler->Visit({.batch = 12, .trial_count = 1});
//   sampler->Close();
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/agent/sampling_loop.h"
#include "client/agent/served_writer.h"

namespace stepwell::agent {

class SamplerWriter {
 public:
  struct Settings {
    absl::Duration interval = absl::Seconds(1);
    // Below it lie proc and sys.
    std::string root = "/";
  };
  // What the agent knows at a tick beside the sensors.
  struct Surroundings {
    // Of the last StepEnd of the trial's lowest live rank here; -1 = none.
    std::int32_t batch = -1;
    // Live trials on this machine.
    int trial_count = 1;
  };

  static absl::StatusOr<std::unique_ptr<SamplerWriter>> Open(FileDescriptor directory,
                                                             WriterIdentity identity,
                                                             Settings settings,
                                                             const ServeContext& context);

  void Visit(const Surroundings& surroundings);
  // Takes a last tick; nothing follows.
  void Close(const Surroundings& surroundings);
  // Ends this writer and goes on as another, of another attempt: the sensors are handed over as they
  // run, so that no tick is missed and rates go on. On failure this writer goes on.
  absl::StatusOr<std::unique_ptr<SamplerWriter>> Succeed(FileDescriptor directory,
                                                         WriterIdentity identity,
                                                         const Surroundings& surroundings,
                                                         const ServeContext& context);
  // What is left to send of one that closed or was succeeded. Nothing may be called after it.
  std::unique_ptr<ServedWriter> TakeServed() { return std::move(served_); }
  bool closing() const { return served_->close_requested(); }
  bool done() const { return served_->done(); }
  const WriterIdentity& identity() const { return served_->identity(); }
  ServedWriter& served() { return *served_; }

  // A directory made by an agent whose sampler ended in order. Such a one is never taken up again.
  static bool IsClosed(int directory);

 private:
  // Misses of a sensor since they were last told.
  struct Missing {
    std::uint64_t sample_count = 0;
    std::int64_t first_time_us = 0;
    std::int64_t last_time_us = 0;
    std::int64_t told_time_us = 0;
    std::string reason;
  };
  using MissingKey = std::pair<std::string, pb::GapCause>;

  SamplerWriter(std::unique_ptr<ServedWriter> served, Settings settings,
                const ServeContext& context, std::unique_ptr<SamplingLoop> loop);
  // The loop goes on or has stopped: nothing of it is for this writer.
  void End(const Surroundings& surroundings);
  void TakeTicks(const Surroundings& surroundings);
  void AddTick(const TimedTick& timed, const Surroundings& surroundings);
  bool Wanted(const std::string& metric_group) const;
  void NoteMisses(const TimedTick& timed);
  enum class When { kDue, kNow };
  void TellMisses(std::int64_t now_us, When when);
  absl::Status Seal();
  void FollowDirectives();

  std::unique_ptr<ServedWriter> served_;
  const Settings settings_;
  const Clock& clock_;
  const ClockOffset& clock_offset_;
  std::map<MissingKey, Missing> missing_;
  std::vector<std::string> metric_groups_;  // empty = all
  std::size_t samples_per_tick_ = 1;
  std::unique_ptr<SamplingLoop> loop_;
};

}  // namespace stepwell::agent
