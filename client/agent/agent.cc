#include "client/agent/agent.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr char kAgentVersion[] = "stepwell/0.1.0";
constexpr absl::Duration kShareInterval = absl::Seconds(5);

// The name that people know the machine by.
std::string MachineName() {
  for (const char* variable : {"STEPWELL_AGENT_ID", "NODE_NAME", "SLURMD_NODENAME"}) {
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') {
      return CleanText(value, 128);
    }
  }
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return CleanText(name, 128);
}

// 5 % of what is free, but never so little that nothing could be kept.
std::int64_t FreeShare(int directory) {
  struct statvfs found {};
  if (fstatvfs(directory, &found) != 0) return INT64_MAX;
  const double free_bytes =
      static_cast<double>(found.f_bavail) * static_cast<double>(found.f_frsize);
  return std::max(static_cast<std::int64_t>(free_bytes * 0.05), std::int64_t{1} << 20);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> Agent::Create(AgentOptions options, const Clock& clock) {
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor directory, OpenFormatDirectory(options.spool_dir));
  STEPWELL_ASSIGN_OR_RETURN(AgentLock lock, AgentLock::Take(directory.get()));
  return std::unique_ptr<Agent>(
      new Agent(std::move(options), std::move(directory), std::move(lock), clock));
}

Agent::Agent(AgentOptions options, FileDescriptor format_directory, AgentLock lock,
             const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      format_directory_(std::move(format_directory)),
      lock_(std::move(lock)),
      context_{sender_, clock_, {MachineName(), BootId(), kAgentVersion}, Spool::Options()},
      finder_(format_directory_.get()) {
  Stream::Options stream;
  stream.server = options_.server;
  stream_ = std::make_unique<Stream>(std::move(stream), sender_, clock_, [this] { Wake(); });
}

Agent::~Agent() { stream_->Stop(); }

void Agent::Run() {
  log::Info("agent_started", {{"server", options_.server}, {"spool_dir", options_.spool_dir}});
  busy_at_ = clock_.Monotonic();
  stream_->Start();
  do {
    visit_due_ = clock_.Monotonic() + options_.frame_interval;
    VisitAll();
  } while (!IdleForLong() && WaitForVisit());
  Drain();
  stream_->Stop();
  log::Info("agent_stopped", {{"all_acked", AllAcked()}});
}

void Agent::VisitAll() {
  ServeNew();
  ShareSpool();
  for (const auto& [name, writer] : writers_) writer->Visit();
  RemoveOld();
  stream_->Wake();
}

void Agent::ServeNew() {
  for (FoundWriter& found : finder_.FindNew()) {
    const std::string name = found.name;
    log::Info("writer_found",
              {{"writer", name}, {"trial", found.identity.trial}, {"rank", found.identity.rank}});
    absl::StatusOr<std::unique_ptr<RankWriter>> writer =
        RankWriter::Open(std::move(found.directory), std::move(found.identity), context_);
    if (writer.ok()) {
      writers_[name] = *std::move(writer);
    } else {
      log::Warning("writer_unservable",
                   {{"writer", name}, {"why", std::string(writer.status().message())}});
    }
  }
}

// The bound is of all spools together; each has the same share of it.
void Agent::ShareSpool() {
  if (writers_.empty() || clock_.Monotonic() - shared_at_ < kShareInterval) return;
  shared_at_ = clock_.Monotonic();
  const std::int64_t bytes_max =
      std::min(options_.spool_bytes_max, FreeShare(format_directory_.get()));
  const auto share = bytes_max / static_cast<std::int64_t>(writers_.size());
  for (const auto& [name, writer] : writers_) writer->served().SetBytesMax(share);
}

// A closed writer stays as long as its acked tail would: a master that comes back older is told
// again.
void Agent::RemoveOld() {
  const absl::Duration now = clock_.Monotonic();
  for (auto entry = writers_.begin(); entry != writers_.end();) {
    if (!entry->second->done() || now - entry->second->done_at() < context_.spool.acked_age_max) {
      ++entry;
      continue;
    }
    entry->second->served().RemoveFiles();
    unlinkat(format_directory_.get(), entry->first.c_str(), AT_REMOVEDIR);
    entry = writers_.erase(entry);
  }
}

bool Agent::AllAcked() const {
  return std::all_of(writers_.begin(), writers_.end(), [](const auto& entry) {
    return entry.second->done() || (entry.second->live() && entry.second->all_acked());
  });
}

bool Agent::IdleForLong() {
  const bool idle = std::all_of(writers_.begin(), writers_.end(),
                                [](const auto& entry) { return entry.second->done(); });
  if (!idle) busy_at_ = clock_.Monotonic();
  return clock_.Monotonic() - busy_at_ >= options_.idle_exit;
}

// Sends what is left. Recorders that live on are found again by the next agent.
void Agent::Drain() {
  const absl::Duration deadline = clock_.Monotonic() + options_.stop_wait;
  do {
    VisitAll();
    if (AllAcked()) return;
    absl::MutexLock lock(&mu_);
    mu_.AwaitWithTimeout(absl::Condition(&woken_), absl::Milliseconds(20));
    woken_ = false;
  } while (clock_.Monotonic() < deadline);
}

// Answers of the master come far more often than frames are due; they matter at once only to
// recorders that wait in close().
bool Agent::WaitForVisit() {
  while (true) {
    const absl::Duration left = visit_due_ - clock_.Monotonic();
    if (left <= absl::ZeroDuration()) return true;
    {
      absl::MutexLock lock(&mu_);
      const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || woken_; };
      mu_.AwaitWithTimeout(absl::Condition(&due), left);
      if (stopping_) return false;
      woken_ = false;
    }
    for (const auto& [name, writer] : writers_) writer->SettleClosing();
  }
}

void Agent::Wake() {
  absl::MutexLock lock(&mu_);
  woken_ = true;
}

void Agent::RequestStop() {
  absl::MutexLock lock(&mu_);
  stopping_ = true;
}

}  // namespace stepwell::agent
