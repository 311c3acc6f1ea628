// ProcessSampler: what a recording process itself uses, as ticks of its own writer, so that the
// samples carry its rank. Read by the thread of a ProcessReader: one visit asks and a later one has
// the tick; for an interval shorter than that between visits, the thread reads at its times by itself.
// Ticks that were not taken in time are told as late, those of a full disk as without room. Confined to
// the agent's loop.
//
//   ProcessSampler sampler(catalog, builder, clock, &reader);
//   sampler.Visit({.pid = status.pid, .batch = 12}, selection);
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "client/agent/chunk_builder.h"
#include "client/agent/process_reader.h"
#include "client/agent/sensors/absence_ledger.h"
#include "client/agent/sensors/process_sensor.h"
#include "client/agent/sensors/tick_schedule.h"
#include "client/agent/series_catalog.h"

namespace stepwell::agent {

// What sensors and the catalog call the same thing.
SeriesSpec SpecOf(const SensedSeries& series);
TickGroupKey TickGroupOf(Cadence cadence);
// As the wire tells it.
void TellAbsences(const std::vector<ToldAbsence>& absences, ChunkBuilder& builder);

class ProcessSampler {
 public:
  // All outlive the sampler. Below `root` lies proc. Without a reader a visit reads itself, once at
  // most, and hangs as the file does. `lead` lies between two visits: asked so long before the machine
  // is read, the answer goes with its tick.
  ProcessSampler(SeriesCatalog& catalog, ChunkBuilder& builder, const Clock& clock,
                 ProcessReader* reader, absl::Duration lead, std::string root = "/");

  // Who is told each sample as well, at what time of the wall clock (µs since 1970); empty: nobody.
  using Tap = std::function<void(const SensedSeries& series, std::int64_t time_us, double value)>;
  void SetTap(Tap tap) { tap_ = std::move(tap); }

  struct Process {
    // 0 = not known: in a PID namespace that the agent does not see.
    pid_t pid = 0;
    // That its last step ended; -1 = none.
    std::int32_t batch = -1;
    std::int32_t rank = 0;
  };
  // One that is not seen has an absence, told once; it is sampled from when it is seen.
  void Visit(const Process& process, const SensorSelection& selection);
  // There is no visit, for a disk is full: ticks are lost for that until the next one.
  void OnNoRoom();
  // A visit would ask, take an answer or miss one: of one that rests or is gone, none does.
  bool IsDue(absl::Duration now) const {
    if (sensor_ == nullptr || rests_) return false;
    return (asked_ && !asked_->late) || schedule_->due() <= now;
  }
  // It is not to be sampled now, and not once more if it ends meanwhile.
  void Rest();
  // The process is gone, or is about to be: one that is still there is asked once more, and what is
  // left to tell is told.
  void End();

 private:
  // What a reader was asked.
  struct Asked {
    std::shared_ptr<ProcessReader::Question> question;
    // The first reading is the only one.
    bool once = true;
    // As of the visit before the next answer.
    std::int32_t batch = -1;
    // It was asked, or answered last.
    absl::Duration heard_at;
    // Taken for hanging: its answer will be thrown away.
    bool late = false;
  };
  // How often the reader's thread comes by itself: each interval of a trial that is shorter than one
  // between visits.
  bool IsDense(const SensorSelection& selection) const {
    return reader_ != nullptr && selection.interval() < lead_;
  }
  void MissUnseen(const Process& process, const SensorSelection& selection);
  // What was asked goes on. False: it hangs.
  bool GoOn(const SensorSelection& selection, absl::Duration now);
  void Ask(std::shared_ptr<Sensor> sensor, absl::Duration now);
  // kLast: as long as the loop can wait.
  enum class Await { kNow, kLast };
  void TakeAnswers(Await await);
  std::optional<ProcessReader::Answer> NextAnswer(Await await);
  void MissAnswer(absl::Duration now, std::uint64_t tick_count);
  // Ticks that nobody began, for a reason that is no sensor's.
  void CountLost(AbsenceKind kind, std::uint64_t tick_count, AbsenceSpan span,
                 const std::string& reason);
  // Those that were due before `before_us`.
  void CountMissed(AbsenceKind kind, std::uint64_t tick_count, std::int64_t before_us,
                   const std::string& reason);
  // Whoever still reads for it does so with a sensor that nobody else has.
  void LeaveProcess();
  void AskLast(absl::Duration now);
  void AddTick(const Reading& reading, std::int64_t time_us, std::int32_t batch);
  void NoteAbsences(const Reading& reading, std::int64_t time_us);

  SeriesCatalog& catalog_;
  ChunkBuilder& builder_;
  const Clock& clock_;
  ProcessReader* const reader_;
  const absl::Duration lead_;
  const KernelText kernel_;
  const std::shared_ptr<SeriesPool> pool_ = std::make_shared<SeriesPool>();
  pid_t pid_ = 0;
  std::shared_ptr<ProcessSensor> sensor_;  // the reader's as well, while it is asked
  std::optional<Asked> asked_;
  // As it was asked last.
  std::shared_ptr<const SensorSelection> selection_;
  absl::Duration asked_at_;
  std::int32_t batch_ = -1;
  bool rests_ = false;
  // Since the last visit.
  bool was_full_ = false;
  std::optional<TickSchedule> schedule_;
  AbsenceLedger absences_;
  Tap tap_;
};

}  // namespace stepwell::agent
