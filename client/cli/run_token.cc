#include "client/cli/run_token.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/backoff.h"
#include "base/steady_time.h"
#include "client/cli/master_client.h"
#include "client/cli/options.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::cli {
namespace {

// What a training's start waits at most. A master of this machine's network answers within some 50 ms.
constexpr absl::Duration kPatience = absl::Seconds(3);
// A master that has no turn just now says so within a second; whoever it told so comes once more after half a second to one, a job's
// ranks not all at one time.
constexpr absl::Duration kAskAgain = absl::Seconds(1);
// For a process that was killed to be gone; one that a file server holds is left behind.
constexpr absl::Duration kKillTime = absl::Milliseconds(200);
// An agent renews it, for an hour each time: so long may its master be away then. Masters lower it.
constexpr int kLifetimeSeconds = 6 * 3600;
constexpr std::size_t kTextBytesMax = 4096;
constexpr char kKept[] = "STEPWELL_TOKEN goes to the program as it is";

// What the asking process says: one of these, and a text.
enum class Said : char { kToken = 'T', kNarrow = 'W', kNone = 'N', kRemark = 'R' };

std::string NameOf(const v1::TrialRef& trial) {
  return trial.trial_id() != 0 ? absl::StrCat("id:", trial.trial_id())
                               : absl::StrCat(trial.project(), "/", trial.external_id());
}

std::string Word(Said said, absl::string_view text) {
  return absl::StrCat(std::string(1, static_cast<char>(said)), text);
}

absl::optional<absl::Cord> ReasonOf(const absl::Status& status) {
  return status.GetPayload("stepwell/reason");
}

std::string AskMaster(const RunTokenWish& wish) {
  MasterPlace place{.address = wish.address, .tls = ClientTls({})};
  if (absl::Status files = CheckClientTls(place.tls); !files.ok()) {
    return Word(Said::kRemark, files.message());
  }
  absl::StatusOr<TlsMaterial> own = ReadTls(place.tls, TlsSide::kClient);
  if (!own.ok()) return Word(Said::kRemark, own.status().message());
  place.own = *std::move(own);
  MasterClient master(std::move(place));
  absl::StatusOr<v1::FetchIngestTokenResponse> response = master.FetchIngestToken(wish.request);
  if (ReasonOf(response.status()) == "FETCHES_UNDER_WAY") {
    absl::SleepFor(Backoff({.first = kAskAgain, .longest = kAskAgain}).NextDelay());
    response = master.FetchIngestToken(wish.request);
  }
  if (response.ok()) return Word(Said::kToken, response->text());
  const auto reason = ReasonOf(response.status());
  // It may do no more than a new one would.
  if (reason == "TOKEN_IS_NARROW") return Word(Said::kNarrow, "");
  // A master that asks nobody for tokens.
  if (reason == "NO_TOKENS_ASKED") return Word(Said::kNone, "");
  return Word(Said::kRemark, response.status().message());
}

// Never returns.
[[noreturn]] void BecomeAsker(const RunTokenWish& wish, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // What a library has to say is not the training's.
  if (const int none = open("/dev/null", O_RDWR); none >= 0) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(none, stream);
  }
  const std::string said = AskMaster(wish).substr(0, kTextBytesMax);
  // Within what a pipe takes at once.
  _exit(write(output, said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
}

// What there is to read until the other end is closed, or the time has passed.
std::string ReadAll(int input, SteadyTime deadline) {
  std::string all;
  std::array<char, kTextBytesMax> bytes;
  while (all.size() <= kTextBytesMax) {
    pollfd ready{input, POLLIN, 0};
    const auto left = std::max<std::int64_t>(absl::ToInt64Milliseconds(deadline.Left()), 0);
    const int count = poll(&ready, 1, static_cast<int>(left));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return all;
    const ssize_t got = read(input, bytes.data(), bytes.size());
    if (got <= 0) return all;
    all.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return all;
}

void End(pid_t asker) {
  kill(asker, SIGKILL);
  const SteadyTime deadline = SteadyTime::Now() + kKillTime;
  while (waitpid(asker, nullptr, WNOHANG) == 0 && !deadline.HasPassed()) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

std::string AskBeside(const RunTokenWish& wish) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Word(Said::kRemark, "no pipe");
  const pid_t parent = getpid();
  const pid_t asker = fork();
  if (asker == 0) BecomeAsker(wish, ends[1], parent);
  close(ends[1]);
  std::string said = asker < 0 ? Word(Said::kRemark, "no process to ask with")
                               : ReadAll(ends[0], SteadyTime::Now() + kPatience);
  close(ends[0]);
  if (asker > 0) End(asker);
  return said;
}

// As the program will find them.
recorder::Environment EnvironmentThen(const recorder::ProgramSurroundings& around,
                                      const RunVariables& variables) {
  return [&around, &variables](const char* name) -> const char* {
    const auto set = variables.find(name);
    return set == variables.end() ? around.environment(name) : set->second.c_str();
  };
}

}  // namespace

std::optional<RunTokenWish> ReadRunTokenWish(const recorder::ProgramSurroundings& around,
                                             const RunVariables& variables, std::string& remark) {
  const recorder::Environment then = EnvironmentThen(around, variables);
  const auto value = [&](const char* name) { return recorder::ReadVariable(then, name); };
  // Without TLS nobody shows it.
  if (value("STEPWELL_TOKEN").empty() || value("STEPWELL_TLS_CA").empty()) return std::nullopt;
  if (recorder::IsSwitchedOn(then, "STEPWELL_DISABLED") ||
      recorder::IsSwitchedOn(then, "STEPWELL_OFFLINE")) {
    return std::nullopt;
  }
  RunTokenWish wish{.address = value("STEPWELL_SERVER"), .request = {}};
  if (wish.address == spool::kServerOffline) return std::nullopt;
  if (wish.address.empty()) wish.address = absl::StrCat("127.0.0.1:", kDefaultGrpcPort);
  const std::string trial = value("STEPWELL_TRIAL");
  const std::string project = value("STEPWELL_PROJECT");
  if (trial.empty()) {
    remark = absl::StrCat(kKept, ": without --trial nobody knows yet whose to fetch in its place");
    return std::nullopt;
  }
  const bool is_number = absl::StartsWith(trial, "id:");
  absl::StatusOr<v1::TrialRef> ref = ParseTrialRef(trial, is_number         ? ""
                                                          : project.empty() ? "default"
                                                                            : project);
  if (!ref.ok()) {
    remark = absl::StrCat(kKept, ": ", ref.status().message());
    return std::nullopt;
  }
  *wish.request.mutable_trial() = *std::move(ref);
  wish.request.set_lifetime_seconds(kLifetimeSeconds);
  wish.request.set_unless_narrow(true);
  return wish;
}

RunToken FetchRunToken(const recorder::ProgramSurroundings& around, const RunVariables& variables) {
  RunToken token;
  const std::optional<RunTokenWish> wish = ReadRunTokenWish(around, variables, token.remark);
  if (!wish) return token;
  const std::string said = AskBeside(*wish);
  const Said kind = said.empty() ? Said::kRemark : Said{said[0]};
  const std::string text = said.empty() ? absl::StrCat("nobody answered at ", wish->address,
                                                       " within ", absl::FormatDuration(kPatience))
                                        : said.substr(1);
  switch (kind) {
    case Said::kToken:
      token.text = text;
      token.trial = NameOf(wish->request.trial());
      break;
    case Said::kNarrow:
      token.text = recorder::ReadVariable(EnvironmentThen(around, variables), "STEPWELL_TOKEN");
      token.trial = NameOf(wish->request.trial());
      break;
    case Said::kNone:
      break;
    case Said::kRemark:
      token.remark = absl::StrCat(kKept, ", and no token of its trial alone: ", text);
  }
  return token;
}

}  // namespace stepwell::cli
