#include "client/agent/agent_main.h"

#include <sysexits.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "base/descriptor_limit.h"
#include "base/grpc_log.h"
#include "base/process_secrets.h"
#include "base/worker.h"
#include "client/agent/agent.h"
#include "client/agent/detached_process.h"
#include "client/agent/sensors/boot_clock.h"
#include "client/agent/start_pages.h"

namespace stepwell {
namespace {

int Complain(const absl::Status& status, int code) {
  std::cerr << "stepwell agent: " << status.message() << "\n";
  if (code == EX_USAGE) std::cerr << "Try: stepwell agent --help\n";
  return code;
}

// Signals are taken by a thread of their own: handlers may do next to nothing.
class StopSignals {
 public:
  explicit StopSignals(agent::Agent& agent) {
    waiter_ = Worker("agent-signals", [this, &agent] {
      int signal = 0;
      sigwait(&set_, &signal);
      agent.RequestStop();
    });
  }
  ~StopSignals() {
    // Lets the waiter go when the agent ended by itself.
    kill(getpid(), SIGTERM);
    waiter_.Join();
  }

  // Before any thread is started, so that all inherit it.
  static void Block() {
    for (const int ignored : {SIGPIPE, SIGHUP, SIGXFSZ}) std::signal(ignored, SIG_IGN);
    // A trial's Ctrl-C is not for the agent, unless someone sits before it. It must not be waited
    // for either: a blocked signal is kept although it is ignored.
    if (!AtTerminal()) std::signal(SIGINT, SIG_IGN);
    sigset_t set = StopSet();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
  }

 private:
  static sigset_t StopSet() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    if (AtTerminal()) sigaddset(&set, SIGINT);
    return set;
  }
  static bool AtTerminal() { return isatty(STDIN_FILENO) != 0; }
  const sigset_t set_ = StopSet();
  Worker waiter_;
};

}  // namespace

int AgentMain(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  HideOptionValue(argc, argv, "--token");
  const absl::StatusOr<agent::ParsedOptions> parsed = agent::ParseAgentOptions(arguments);
  if (!parsed.ok()) {
    const bool usage = absl::IsInvalidArgument(parsed.status());
    return Complain(parsed.status(), usage ? EX_USAGE : EX_CONFIG);
  }
  if (!parsed->help.empty()) {
    std::cout << parsed->help;
    return EX_OK;
  }
  if (parsed->options.on_demand) {
    // What goes wrong from here on is in the agent's log, or nowhere.
    if (const absl::Status status = agent::DetachProcess(); !status.ok()) {
      return Complain(status, EX_OSERR);
    }
  }
  // Users' tokens lie in its memory, whatever it was started with itself.
  if (parsed->options.system) KeepMemoryPrivateOfAllUsers();
  LogWhatGrpcSays();
  agent::ReleaseStartPages();
  RaiseDescriptorLimit();
  StopSignals::Block();
  const auto agent = agent::Agent::Create(parsed->options, agent::BootClock::Get());
  if (absl::IsAlreadyExists(agent.status()) && !parsed->options.trial.empty()) {
    // Whoever names a trial by hand wants it sampled, which that one does not know.
    std::cerr
        << "stepwell agent: " << agent.status().message() << ": '" << parsed->options.trial
        << "' is not sampled. End that agent (one that a training started ends a minute after "
           "the last training), or give this one a --spool-dir of its own\n";
    return EX_TEMPFAIL;
  }
  if (absl::IsAlreadyExists(agent.status())) {
    std::cout << "stepwell agent: " << agent.status().message() << "; nothing to do\n";
    return EX_OK;
  }
  if (!agent.ok()) return Complain(agent.status(), EX_CANTCREAT);
  StopSignals signals(**agent);
  (*agent)->Run();
  return EX_OK;
}

}  // namespace stepwell
