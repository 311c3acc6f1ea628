#include "client/agent/worker_rings.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

// Told with the next frame; so many are worth a record of their own.
constexpr std::size_t kGoneMax = 1024;
constexpr int kTreeDepth = 2;

}  // namespace

void WorkerRings::Find(const Life& life) {
  RemoveFinished();
  process_alive_ = life.process;
  const bool is_last = !life.process && !life.any_worker;
  const bool may_have_new = watch_.MayHaveChanged(directory_);
  if (is_last || look_again_ || may_have_new) {
    const std::vector<Name> listed = List();
    for (const Name& name : listed) {
      if (!workers_.contains(name)) Serve(name, IsDead(name, listed));
    }
    if (complete()) ForgetAbsent();
  }
  // Before their rings are read: one found dead is then drained completely.
  for (auto worker = workers_.begin(); worker != workers_.end(); ++worker) {
    const auto next = std::next(worker);
    const bool has_successor = next != workers_.end() && next->first.index == worker->first.index;
    worker->second.alive =
        worker->second.alive && !has_successor && lock_.IsWorkerAlive(worker->first.index);
  }
}

std::vector<WorkerRings::Name> WorkerRings::List() {
  std::vector<Name> names;
  const absl::StatusOr<std::vector<std::string>> listed = ListNames(directory_);
  look_again_ = !listed.ok();
  if (!listed.ok()) return names;
  for (const std::string& text : *listed) {
    if (const std::optional<Name> name = ParseWorkerName(text)) names.push_back(*name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A process makes a higher one only after it got the byte of the dead.
bool WorkerRings::IsDead(const Name& name, const std::vector<Name>& listed) const {
  const auto next = std::upper_bound(listed.begin(), listed.end(), name);
  const bool has_successor = next != listed.end() && next->index == name.index;
  return has_successor || !lock_.IsWorkerAlive(name.index);
}

void WorkerRings::Serve(const Name& name, bool is_dead) {
  // Those that are dead make room when they are stored.
  if (workers_.size() >= spool::kWorkerCountMax) {
    look_again_ = true;
    return;
  }
  const std::string text = TextOf(name);
  const auto open = [&]() -> absl::StatusOr<std::unique_ptr<RecordedRings>> {
    STEPWELL_ASSIGN_OR_RETURN(FileDescriptor directory,
                              OpenDirectoryAt(directory_, text, WhenAbsent::kFail));
    return RecordedRings::Open(std::move(directory), folder_.OpenWorker(text), name.index, budget_);
  };
  absl::StatusOr<std::unique_ptr<RecordedRings>> rings = open();
  if (rings.ok()) {
    Worker worker;
    worker.rings = *std::move(rings);
    worker.key = {name.index, worker.rings->opened_ns()};
    worker.alive = !is_dead;
    if (const auto known = recovered_.find(worker.key); known != recovered_.end()) {
      if (known->second) worker.rings->Recover(*std::move(known->second));
      recovered_.erase(known);
    }
    if (control_) worker.rings->StoreControl(*control_);
    worker.rings->StoreAgentState(spool::kAgentServing);
    workers_.emplace(name, std::move(worker));
    return;
  }
  // It is being made, or there are no descriptors now; or it died before it was made.
  look_again_ = true;
  if (absl::IsResourceExhausted(rings.status())) return;
  if (!absl::IsNotFound(rings.status())) LogTrouble(name, rings.status());
  if (is_dead) Remove(name);
}

// Of those, an earlier agent removed the files and could not tell the spool any more.
void WorkerRings::ForgetAbsent() {
  for (const auto& [key, progress] : recovered_) gone_.push_back(key);
  recovered_.clear();
}

void WorkerRings::Drain(ThreadSampleSink& sink) {
  for (const std::uint64_t number : std::exchange(left_, {})) sink.LeaveProcess(number);
  drained_ = true;
  for (auto& [name, worker] : workers_) {
    if (worker.broken) continue;
    if (sink.full()) {
      drained_ = false;
      return;
    }
    const auto drain = [&, &each = worker]() -> absl::Status {
      const bool was_closed = each.header.closed;
      STEPWELL_ASSIGN_OR_RETURN(each.header, each.rings->ReadHeader());
      ended_in_order_ |= each.header.closed && !was_closed && !process_alive_;
      const auto ending = each.alive && !each.header.closed ? RecordedRings::Ending::kMoreToCome
                                                            : RecordedRings::Ending::kFinal;
      return each.rings->Drain(each.header, ending, sink);
    };
    if (const absl::Status drained = drain(); !drained.ok()) {
      // Told as damage: the others go on.
      worker.broken = true;
      LogTrouble(name, drained);
      sink.OnLoss({EventLoss::Cause::kDamaged, 0, 0, 0});
      continue;
    }
    drained_ &= worker.rings->drained();
  }
}

bool WorkerRings::HasNews() {
  // What is done with is told and removed by those who follow Drain.
  if (look_again_ || !drained_ || !left_.empty()) return true;
  if (watch_.MayHaveChanged(directory_)) {
    look_again_ = true;  // the change is seen only once
    return true;
  }
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& entry) {
    const Worker& worker = entry.second;
    return !worker.broken && (!worker.alive || worker.rings->HasNews());
  });
}

void WorkerRings::RemoveFinished() {
  for (auto entry = workers_.begin(); entry != workers_.end();) {
    Worker& worker = entry->second;
    worker.rings->DropFinished();
    // One that closed and lives waits for its ack.
    if (worker.alive || !(worker.broken || worker.rings->finished())) {
      ++entry;
      continue;
    }
    left_.push_back(worker.rings->number());
    gone_.push_back(worker.key);
    Remove(entry->first);
    entry = workers_.erase(entry);
  }
}

void WorkerRings::Remove(const Name& name) {
  const std::string text = TextOf(name);
  RemoveTree(directory_, text, kTreeDepth);
  if (folder_.visible()) RemoveTree(folder_.get(), text, kTreeDepth);
}

RecordedRings::Moved WorkerRings::TakeProgress(Checkpoint& checkpoint) {
  RecordedRings::Moved all;
  for (auto& [name, worker] : workers_) {
    RingProgress progress;
    const RecordedRings::Moved moved = worker.rings->TakeProgress(progress);
    if (!moved.moved) continue;
    checkpoint.workers[worker.key] = std::move(progress);
    all.moved = true;
    // What ended takes room until it is written.
    all.urgent |= moved.urgent || worker.rings->ended();
  }
  for (const WorkerKey& key : gone_) checkpoint.workers[key] = std::nullopt;
  all.urgent |= gone_.size() > kGoneMax;
  return all;
}

void WorkerRings::StoreTails(const Checkpoint& written) {
  std::erase_if(gone_, [&](const WorkerKey& key) {
    const auto told = written.workers.find(key);
    return told != written.workers.end() && !told->second;
  });
  for (auto& [name, worker] : workers_) {
    const auto told = written.workers.find(worker.key);
    if (told != written.workers.end() && told->second) worker.rings->StoreTails(*told->second);
  }
}

void WorkerRings::StoreControl(std::uint32_t control) {
  control_ = control;
  for (auto& [name, worker] : workers_) worker.rings->StoreControl(control);
}

void WorkerRings::NoteSealed(std::uint64_t sequence) {
  for (auto& [name, worker] : workers_) {
    if (worker.header.closed && worker.rings->finished() && !worker.sealed_sequence) {
      worker.sealed_sequence = sequence;
    }
  }
}

void WorkerRings::TellStored(std::uint64_t stored_sequence, spool::AgentState state) {
  for (auto& [name, worker] : workers_) {
    if (!worker.sealed_sequence || worker.told || *worker.sealed_sequence > stored_sequence)
      continue;
    worker.told = true;
    worker.rings->StoreAgentState(state);
  }
}

bool WorkerRings::awaits_ack() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& entry) {
    return entry.second.sealed_sequence && !entry.second.told;
  });
}

std::uint64_t WorkerRings::last_step() const {
  for (const auto& [name, worker] : workers_) {
    if (worker.alive && worker.header.last_step != 0) return worker.header.last_step;
  }
  return 0;
}

void WorkerRings::LogTrouble(const Name& name, const absl::Status& why) {
  if (SteadyTime::Now() - trouble_logged_ < absl::Minutes(1)) return;
  trouble_logged_ = SteadyTime::Now();
  log::Warning("worker_trouble", {{"worker", TextOf(name)}, {"why", std::string(why.message())}});
}

}  // namespace stepwell::agent
