// SamplerWriter: the machine's sampler as a writer of a trial: ticks of system metrics, each with
// the batch that the trial was at, in a spool of their own. Where the master says that another agent
// samples the machine, it goes on with what that one cannot see. Confined to the agent's loop.
//
// Whose the first ticks are to tell is the master's word. A tick waits for it in memory, where an agent
// that is killed loses it uncounted, only while a master is being asked: 2 s while a stream stands and
// Open is not refused, 1 s more for the names of others' GPUs, 0.1 s where there is no stream. What was
// not answered by then is this agent's: it is in the spool with the next visit, and stays there whatever
// the word is later. So what is kept by two agents of one machine, and counted twice, is at most what
// both took before a master was there to elect one; what a kill loses is at most what waited for it, and that is counted where
// an earlier frame tells since when.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto sampler, SamplerWriter::Open(std::move(dir), who, settings, context));
//   sampler->Visit({.batch = 12, .trial_count = 1});
//   sampler->Close();
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "client/agent/ended_ticks.h"
#include "client/agent/sampling_loop.h"
#include "client/agent/sensors/absence_ledger.h"
#include "client/agent/sensors/machine_sensors.h"
#include "client/agent/served_writer.h"

namespace stepwell::agent {

class SamplerWriter {
 public:
  struct Settings {
    // What the trial wants; directives change it.
    SensorSelection selection = {};
    MachineOptions machine = {};
    // What lies between those and the first tick here is counted as late.
    std::optional<EndedTicks> after = {};
    // Since when one of the trial that lives has recorded: nobody missed what was not sampled before. 0 = not known.
    std::int64_t live_since_us = 0;
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
  // Takes a last tick; nothing follows. The writer is closed when all of it is in its spool: at once,
  // or in a later Visit.
  void Close(const Surroundings& surroundings);
  // Ends this writer and goes on as another, of another attempt: the sensors are handed over as they
  // run, so that no tick is missed and rates go on. On failure (also where what this one holds finds
  // no room) this writer goes on.
  absl::StatusOr<std::unique_ptr<SamplerWriter>> Succeed(FileDescriptor directory,
                                                         WriterIdentity identity,
                                                         const Surroundings& surroundings,
                                                         const ServeContext& context);
  // What is left to send of one that closed or was succeeded. Nothing may be called after it.
  std::unique_ptr<ServedWriter> TakeServed() { return std::move(served_); }
  bool closing() const { return closing_; }
  // Ticks wait for the master's word.
  bool has_waiting() const { return !waiting_.empty(); }
  bool done() const { return served_->done(); }
  const WriterIdentity& identity() const { return served_->identity(); }
  // What the trial wants now, directives included.
  SensorSelection selection() const;
  // As the trial asks from now on; directives go before it.
  void SetSelection(SensorSelection selection) { settings_.selection = std::move(selection); }
  ServedWriter& served() { return *served_; }

  // A directory made by an agent whose sampler ended in order. Such a one is never taken up again.
  static bool IsClosed(int directory);
  // Before Close: the trial goes on, and another agent will find where this one's ticks ended.
  void LeaveToNext() { is_left_ = true; }
  // As such a one left it; none where the trial ended with it.
  static std::optional<EndedTicks> ReadEnded(int directory);

 private:
  SamplerWriter(std::unique_ptr<ServedWriter> served, Settings settings,
                const ServeContext& context, std::unique_ptr<SamplingLoop> loop);
  // Writes down the last that this one holds. On failure it is all still there, for another try.
  absl::Status SealLast();
  // REQUIRES: SealLast succeeded.
  void CloseServed();
  EndedTicks Ended() const;
  // Once, at the first tick.
  void TellBetweenAgents(const TimedTick& first);
  // Likewise behind an agent that was killed, of which the newest frame tells when its last tick was: what the first tick here has
  // at once, and with the second what that has more, which are rates.
  void TellBehindKilled(const TimedTick& tick);
  // `ended`, and no tick until then; so many more after it.
  void TellNoAgent(const EndedTicks& ended, std::int64_t until_us, std::uint64_t more = 0);
  void TryClose();
  // Taken, not yet written: whose they are to tell is known with the master's answer.
  struct WaitingTick {
    TimedTick timed;
    Surroundings surroundings;
  };
  enum class Waiting { kForAnswer, kNoMore };
  void TakeTicks(const Surroundings& surroundings, Waiting waiting = Waiting::kForAnswer);
  bool IsAnswered();
  // How long ticks wait for the first answer, as the stream is now.
  static absl::Duration PatienceOf(const OutboundWriter::Status& status);
  // What was around when it was taken; of a past one, then, not now.
  Surroundings AroundOf(const TimedTick& timed, const Surroundings& now);
  void AddTick(const TimedTick& timed, const Surroundings& surroundings);
  // 0 where the writer has no room for more series.
  std::uint32_t RefOf(Cadence cadence, const SensedSeries& series);
  void AddOwn(const Surroundings& surroundings, std::vector<RefValue>& values);
  void AddPlacement(std::vector<RefValue>& values);
  absl::Status Seal();
  void FollowDirectives();
  // Without what another agent of the machine samples.
  SensorSelection WantedNow() const;

  std::unique_ptr<ServedWriter> served_;
  // In which pod and job the trial is here.
  const SensedSeries placement_;
  bool closing_ = false;
  bool is_left_ = false;
  // Of the cadence that the trial chose; 0 = none yet.
  std::int64_t last_tick_us_ = 0;
  struct BehindKilled {
    std::int64_t last_time_us = 0;  // 0 = nothing is to be told
    std::int64_t until_us = 0;      // 0 = no tick yet
    std::uint64_t told_count = 0;   // of each tick
  };
  BehindKilled behind_killed_;
  absl::Duration trouble_logged_ = -absl::InfiniteDuration();
  Settings settings_;
  const Clock& clock_;
  const ClockOffset& clock_offset_;
  AbsenceLedger absences_;
  const absl::Duration began_at_;
  absl::Duration told_off_at_ = absl::InfiniteDuration();
  bool answered_ = false;
  std::vector<WaitingTick> waiting_;
  // Batches of the newest ticks, by time: a slow device's answer belongs to a tick before.
  std::map<std::int64_t, std::int32_t> batches_;
  // By the address of a series, which lives as long as the loop; one is of one cadence.
  absl::flat_hash_map<const SensedSeries*, std::uint32_t> ref_by_series_;
  // Of the newest tick of each cadence: what a late one would have had.
  std::map<Cadence, std::size_t> sample_counts_;
  std::unique_ptr<SamplingLoop> loop_;
};

}  // namespace stepwell::agent
