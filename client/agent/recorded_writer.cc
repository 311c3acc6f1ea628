#include "client/agent/recorded_writer.h"

#include <signal.h>

#include <cerrno>
#include <utility>

#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

// A recorder looks four times a second, on a machine that is not too busy.
constexpr std::chrono::milliseconds kLockAbsenceMax{1000};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordedWriter>> RecordedWriter::Open(FileDescriptor directory,
                                                                     Checkpoint checkpoint,
                                                                     RingFolder folder,
                                                                     RingBudget& budget) {
  STEPWELL_ASSIGN_OR_RETURN(WriterLock lock, WriterLock::Open(directory.get()));
  STEPWELL_ASSIGN_OR_RETURN(
      std::unique_ptr<RecordedRings> rings,
      RecordedRings::Open(std::move(directory), std::move(folder), spool::kNoWorker, budget));
  auto workers = std::move(checkpoint.workers);
  rings->Recover(std::move(checkpoint));
  return std::unique_ptr<RecordedWriter>(
      new RecordedWriter(std::move(lock), std::move(rings), budget, std::move(workers)));
}

RecordedWriter::RecordedWriter(WriterLock lock, std::unique_ptr<RecordedRings> rings,
                               RingBudget& budget,
                               std::map<WorkerKey, std::optional<RingProgress>> workers)
    : lock_(std::move(lock)),
      rings_(std::move(rings)),
      workers_(rings_->directory(), rings_->folder(), lock_, budget, std::move(workers)) {}

absl::StatusOr<WriterStatus> RecordedWriter::ReadStatus() {
  WriterStatus status;
  held_its_lock_ = status.alive = lock_.IsProcessAlive(status.pid);
  // After the process: one that dies now may have forked before, and its child asks for its byte
  // later. Such a child is a process of its own that joins a dead writer; it is found all the same
  // while others live.
  if (!status.alive) status.workers_alive = lock_.IsAnyWorkerAlive();
  workers_.Find({status.alive, status.workers_alive});
  STEPWELL_ASSIGN_OR_RETURN(status.own, rings_->ReadHeader());
  if (MayTakeItsLockAgain(status)) status.alive = true;
  was_alive_ = was_alive_ || status.alive;
  if (status.alive && status.own.closed) status.workers_alive = lock_.IsAnyWorkerAlive();
  const std::uint64_t step = status.records() ? 0 : workers_.last_step();
  status.last_step = step != 0 ? step : status.own.last_step;
  return status;
}

bool RecordedWriter::HasNews() {
  pid_t holder = 0;
  return lock_.IsProcessAlive(holder) != held_its_lock_ || rings_->HasNews() || workers_.HasNews();
}

// A program that closes every descriptor lets go of its lock; its recorder takes it again.
bool RecordedWriter::MayTakeItsLockAgain(const WriterStatus& status) {
  if (status.alive) lock_lost_at_.reset();
  if (status.alive || status.own.closed || status.own.pid <= 0) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!lock_lost_at_) {
    // Where it was gone at first sight nobody is waited for.
    lock_lost_at_ = was_alive_ ? now : now - kLockAbsenceMax;
  }
  const bool is_there = kill(status.own.pid, 0) == 0 || errno == EPERM;
  return is_there && now - *lock_lost_at_ < kLockAbsenceMax;
}

absl::Status RecordedWriter::Drain(const WriterStatus& status, Ending ending,
                                   ThreadSampleSink& sink) {
  STEPWELL_RETURN_IF_ERROR(rings_->Drain(status.own, ending, sink));
  workers_.Drain(sink);
  return absl::OkStatus();
}

RecordedWriter::Progress RecordedWriter::TakeProgress() {
  Progress progress;
  for (const RecordedRings::Moved moved :
       {rings_->TakeProgress(progress.checkpoint), workers_.TakeProgress(progress.checkpoint)}) {
    progress.moved |= moved.moved;
    progress.urgent |= moved.urgent;
  }
  return progress;
}

void RecordedWriter::StoreTails(const Checkpoint& checkpoint) {
  rings_->StoreTails(checkpoint);
  workers_.StoreTails(checkpoint);
}

void RecordedWriter::StoreCapture(std::uint32_t request, std::int32_t first_batch,
                                  std::int32_t step_count) {
  const std::uint64_t steps = std::uint64_t{static_cast<std::uint32_t>(first_batch)} << 32 |
                              static_cast<std::uint32_t>(step_count);
  const FileDescriptor& header = rings_->header();
  if (!StoreAt(header, offsetof(spool::WriterHeader, capture_steps), steps).ok()) return;
  StoreAt(header, offsetof(spool::WriterHeader, capture_request), request).IgnoreError();
}

void RecordedWriter::StoreControl(std::uint32_t control) {
  rings_->StoreControl(control);
  workers_.StoreControl(control);
}

}  // namespace stepwell::agent
