#include "client/recorder/src/agent_starter.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "client/recorder/src/agent_presence.h"
#include "client/recorder/src/monotonic.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::recorder {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookInterval{250};
// While what we launched runs it is a child of the trial's, which the trial might find; the agent
// behind it may come and go between two looks.
constexpr milliseconds kStartingInterval{10};

std::uint64_t Nanoseconds(milliseconds duration) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(duration).count());
}

// Waits for `child` in a thread of its own, which outlives whoever closes.
void ReapInBackground(pid_t child) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([child] { waitpid(child, nullptr, 0); }).detach();
  } catch (...) {
    // No thread: it stays a zombie until the trial ends.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

std::unique_ptr<AgentStarter> AgentStarter::Make(const OpenWishes& wishes, const SpoolRoot& root,
                                                 const std::string& writer_path) {
  constexpr char kOff[] = "off";
  const ProgramSurroundings around = ReadProgramSurroundings(EnvironmentOf(wishes.variables));
  if (!wishes.starts_agent || wishes.agent == kOff ||
      ReadVariable(around.environment, "STEPWELL_AGENT") == kOff) {
    return nullptr;
  }
  return std::make_unique<AgentStarter>(
      AgentLaunch{root.path, ListPrograms(wishes.agent, around),
                  AgentVariables(wishes.variables == nullptr ? environ : wishes.variables,
                                 around.working_directory),
                  root.kind == RootKind::kPrivate},
      writer_path);
}

AgentStarter::AgentStarter(AgentLaunch launch, std::string writer_path)
    : launch_(std::move(launch)), writer_path_(std::move(writer_path)) {}

AgentStarter::~AgentStarter() {
  if (launched_ != 0) ReapInBackground(launched_);
}

milliseconds AgentStarter::Look(std::uint64_t now_ns) {
  if (now_ns >= next_look_ns_) {
    try {
      LookNow(now_ns);
    } catch (...) {
      // Out of memory: the next look may find some.
    }
    is_starting_.store(false);
    has_looked_.store(true);
    failed_since_ns_.store(pace_.failed_since_ns());
    next_look_ns_ = now_ns + Nanoseconds(launched_ != 0 || pace_.is_appearing() ? kStartingInterval
                                                                                : kLookInterval);
  }
  return std::chrono::ceil<milliseconds>(std::chrono::nanoseconds(next_look_ns_ - now_ns));
}

void AgentStarter::LookNow(std::uint64_t now_ns) {
  if (launched_ != 0) Reap(now_ns);
  const bool was_appearing = pace_.is_appearing();
  const AgentPresence presence = LookForAgent(launch_.root);
  const bool is_served = presence.is_served;
  children_.See(presence.holder);
  const bool is_due = pace_.IsDue(is_served, now_ns);
  if (is_served) {
    Tell("");
  } else if (was_appearing && pace_.failed_since_ns() != 0) {
    Tell("no agent: " + program_ + " was started, but does not serve " + launch_.root);
  }
  if (!is_due || launched_ != 0) return;
  is_starting_.store(true);
  // Seen by HandOver, or it is seen here.
  if (!is_handed_over_.load()) Start(now_ns);
}

void AgentStarter::Start(std::uint64_t now_ns) {
  if (access((writer_path_ + "/" + spool::kWriterFile).c_str(), F_OK) != 0) {
    Tell("no agent is started: " + writer_path_ + " is gone");
    return pace_.Failed(now_ns);
  }
  program_ = FindProgram(launch_);
  if (program_.empty()) {
    Tell(launch_.programs.size() == 1
             ? "no agent: there is no program " + launch_.programs.front()
             : "no agent: there is no program stepwell beside this one, beside Stepwell's library "
               "or on PATH (set STEPWELL_AGENT to it, or to off)");
    return pace_.Failed(now_ns);
  }
  if (const int error = Launch(launch_, program_, &launched_); error != 0) {
    launched_ = 0;
    Tell("no agent: " + program_ + " cannot be started: " + std::strerror(error));
    return pace_.Failed(now_ns);
  }
  pace_.Launched(now_ns);
}

void AgentStarter::Reap(std::uint64_t now_ns) {
  int status = 0;
  const pid_t ended = waitpid(launched_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return;
  // The trial may have waited for all of its children, or ignore SIGCHLD: then nobody knows how it
  // ended, and whether an agent comes of it is seen.
  const bool is_fine = ended < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
  launched_ = 0;
  // Another agent came first.
  if (!pace_.is_launching()) return;
  if (is_fine) return pace_.Ended(now_ns);
  Tell("no agent: " + program_ + " agent --spool-dir " + launch_.root +
       (WIFEXITED(status) ? " ended with exit code " + std::to_string(WEXITSTATUS(status))
                          : " was killed by signal " + std::to_string(WTERMSIG(status))));
  pace_.Failed(now_ns);
}

void AgentStarter::AwaitFirstLook(milliseconds patience) const {
  const std::uint64_t until_ns = MonotonicNs() + Nanoseconds(patience);
  while (!has_looked_.load() && MonotonicNs() < until_ns) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

bool AgentStarter::HandOver(milliseconds patience) {
  is_handed_over_.store(true);
  const std::uint64_t until_ns = MonotonicNs() + Nanoseconds(patience);
  while (is_starting_.load()) {
    if (MonotonicNs() >= until_ns) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

void AgentStarter::TakeOver() {
  is_handed_over_.store(false);
  next_look_ns_ = 0;
}

void AgentStarter::Tell(std::string trouble) {
  const std::lock_guard lock(telling_);
  trouble_ = std::move(trouble);
}

std::string AgentStarter::trouble() const {
  const std::lock_guard lock(telling_);
  return trouble_;
}

}  // namespace stepwell::recorder
