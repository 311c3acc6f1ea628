// stepwell upload: sends what a spool directory still holds: of a trial that recorded offline, of a
// machine whose agent died, of a copied directory. It is an agent that ends when all is acked.
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/descriptor_limit.h"
#include "base/grpc_log.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client/agent/agent.h"
#include "client/agent/file_descriptor.h"
#include "client/agent/spool_survey.h"
#include "client/cli/master_client.h"
#include "client/cli/options.h"
#include "client/cli/spool_commands.h"
#include "client/cli/spool_in_use.h"
#include "client/cli/stoppable.h"
#include "client/cli/units.h"
#include "client/cli/upload_view.h"
#include "fmt/format.h"

namespace stepwell::cli {
namespace {

constexpr char kExamples[] =
    "\nDIR is a spool directory ('stepwell agent status' lists them), or a copy of one. Each\n"
    "sample is stored once, however often this runs. Root may send another user's.\n"
    "Exits with 0 where all is stored, 1 where something was refused or needs another command, 66\n"
    "where DIR is no spool directory, 69 where no master answers, 75 where something is left that\n"
    "the same command may send: run it again.\n"
    "\nExamples:\n"
    "  stepwell upload /tmp/stepwell-1000\n"
    "  stepwell upload ./copied --server master:7817 --timeout 5m\n";

// An agent that leaves does so within a second or two.
constexpr absl::Duration kLeavingPatience = absl::Seconds(5);

// That of the machine's list of users: the directory may have one which the owner is not in. Whom the list does not
// have gets nobody's.
gid_t GroupOf(uid_t owner) {
  constexpr gid_t kNobodys = 65'534;
  std::string room(16 << 10, '\0');
  passwd user{};
  passwd* known = nullptr;
  getpwuid_r(owner, &user, room.data(), room.size(), &known);
  return known == nullptr ? kNobodys : known->pw_gid;
}

// What is another user's, root handles with that user's rights, for good and without a group of root's own: the directory's
// content is foreign, and names files to be read. Returns how the directory is named from then on. REQUIRES: one thread.
absl::StatusOr<std::string> BecomeOwnerOf(const std::string& directory) {
  if (geteuid() != 0) return directory;
  const agent::FileDescriptor opened(
      open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found {};
  // What is not there is for the survey to tell.
  if (!opened.valid() || fstat(opened.get(), &found) != 0 || found.st_uid == 0) return directory;
  const gid_t group = GroupOf(found.st_uid);
  // Its owner may be unable to pass through the directories above.
  if (fchdir(opened.get()) != 0) return absl::ErrnoToStatus(errno, directory);
  if (setgroups(0, nullptr) != 0 || setresgid(group, group, group) != 0 ||
      setresuid(found.st_uid, found.st_uid, found.st_uid) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("become uid ", found.st_uid));
  }
  return ".";
}

// It stands, so that certificates are not looked at again: root's may be unreadable to whom it became, and are no affair
// of his.
class StandingClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
  absl::Duration Monotonic() const override { return absl::ZeroDuration(); }
};

// As they are now.
absl::StatusOr<std::shared_ptr<TlsReload>> OpenTls(const TlsFiles& files) {
  static const StandingClock clock;
  STEPWELL_ASSIGN_OR_RETURN(std::shared_ptr<TlsReload> tls,
                            TlsReload::Open(files, TlsSide::kClient, clock));
  (void)tls->Current();  // the one look
  return tls;
}

bool AnythingToSend(const agent::SpoolSurvey& survey) {
  return survey.trace_notes > 0 ||
         std::any_of(survey.writers.begin(), survey.writers.end(),
                     [](const auto& writer) { return writer.trouble.empty() && !writer.is_done; });
}

// One line that is written over again and again, and gone at the end. Only on a terminal.
class ProgressLine {
 public:
  void Show(const agent::Agent::Summary& summary) {
    if (!is_shown_) return;
    std::cerr << fmt::format("\r{} of {} writers stored, {} left \033[K", summary.acked_count,
                             summary.writer_count,
                             ValueText(static_cast<double>(summary.unacked_bytes), "bytes"))
              << std::flush;
  }
  ~ProgressLine() {
    if (is_shown_) std::cerr << "\r\033[K" << std::flush;
  }

 private:
  const bool is_shown_ = isatty(STDERR_FILENO) != 0;
};

// Until all is acked or refused, or nothing was acked for `leave_after`.
bool SendAll(agent::Agent& sender, const HeldSignals& signals) {
  ProgressLine progress;
  return RunStoppable(
      signals, "stepwell-upload", [&] { sender.Run(); }, [&] { sender.RequestStop(); },
      [&] { progress.Show(sender.summary()); });
}

// Whether a master answers there: an agent would try for ever. kCancelled: a signal came.
absl::Status AskMaster(const MasterPlace& place, const HeldSignals& signals) {
  MasterClient master(place);
  absl::Status answer;
  RunStoppable(
      signals, "stepwell-upload",
      [&] {
        v1::ListTrialsRequest question;
        question.set_page_size(1);
        answer = master.ListTrials(question).status();
      },
      [&] { master.Cancel(); }, [] {});
  return answer;
}

// Of the writer whose frames were `was` and are `is` now: those that were acked meanwhile.
void CountStored(const agent::SurveyedWriter& was, const agent::SurveyedWriter& is,
                 UploadOutcome& outcome) {
  // One that was retired goes on in another spool, whose sequences begin anew.
  const bool goes_on = was.spool_number == is.spool_number;
  const std::uint64_t first = goes_on ? was.acked_sequence + 1 : 1;
  // The spool gives up acked frames as time goes by: what was there before counts as well.
  std::map<std::uint64_t, std::uint64_t> samples;
  for (const agent::SurveyedFrame& frame : is.frames) samples[frame.sequence] = frame.sample_count;
  if (goes_on) {
    for (const agent::SurveyedFrame& frame : was.frames)
      samples[frame.sequence] = frame.sample_count;
  }
  for (const auto& [sequence, sample_count] : samples) {
    if (sequence < first || sequence > is.acked_sequence) continue;
    ++outcome.frames_stored;
    outcome.samples_stored += sample_count;
  }
}

// What came of it, as the directory tells before and after.
UploadOutcome Compare(const agent::SpoolSurvey& before, const agent::SpoolSurvey& after) {
  UploadOutcome outcome;
  outcome.root = before.root;
  outcome.traces_left = after.trace_notes;
  if (!after.traces_trouble.empty()) {
    ++outcome.unreadable;
    outcome.trouble = after.traces_trouble;
  }
  std::map<std::string, const agent::SurveyedWriter*> earlier;
  for (const auto& writer : before.writers) earlier[writer.name] = &writer;
  for (const agent::SurveyedWriter& writer : after.writers) {
    const auto known = earlier.extract(writer.name);
    if (!writer.trouble.empty()) {
      ++outcome.unreadable;
      outcome.trouble = writer.trouble;
      continue;
    }
    if (known.empty() || known.mapped()->is_done) continue;
    CountStored(*known.mapped(), writer, outcome);
    if (writer.is_done) {
      ++outcome.writers_stored;
    } else {
      ++outcome.writers_left;
      outcome.frames_left += writer.unacked_frames;
    }
  }
  // The agent removes what has been stored for minutes.
  for (const auto& [name, was] : earlier) {
    if (was->is_done || !was->trouble.empty()) continue;
    ++outcome.writers_stored;
    outcome.frames_stored += was->unacked_frames;
    outcome.samples_stored += was->unacked_samples;
  }
  return outcome;
}

// What the directory does not know: what the master said, and what became of each trace.
void TakeSummary(const agent::Agent::Summary& summary, UploadOutcome& outcome) {
  outcome.writers_refused =
      std::min(outcome.writers_left, static_cast<std::uint64_t>(summary.refused_count));
  outcome.writers_left -= outcome.writers_refused;
  outcome.refusal = summary.refusal;
  outcome.traces_sent = summary.traces.uploaded;
  outcome.traces_gone = summary.traces.gone;
  outcome.traces_given_up = summary.traces.given_up;
  outcome.trace_trouble = summary.traces.why_given_up;
  // Notes that came or went since it looked count as waiting.
  const auto take = [&](std::uint64_t count) {
    const std::uint64_t taken = std::min(outcome.traces_left, count);
    outcome.traces_left -= taken;
    return taken;
  };
  outcome.traces_outside = take(summary.traces.outside);
  outcome.traces_absent = take(summary.traces.absent);
  outcome.traces_refused = take(summary.traces.refused);
  outcome.trace_refusal = summary.traces.why_refused;
}

struct Upload {
  std::string directory;
  MasterPlace master;
  absl::Duration patience;
  std::shared_ptr<TlsReload> tls = nullptr;
  bool sends_named_files = false;
};

absl::StatusOr<UploadOutcome> Send(const Upload& upload, const std::string& place,
                                   const agent::SpoolSurvey& before, const HeldSignals& signals) {
  RaiseDescriptorLimit();
  // What goes well is told by the command itself.
  log::Setup({.level = log::Level::kWarning});
  LogWhatGrpcSays();
  agent::AgentOptions options;
  options.server = upload.master.address;
  options.tls = upload.tls;
  options.spool_dir = place;
  options.upload = true;
  options.sends_named_files = upload.sends_named_files;
  options.leave_after = upload.patience;
  // Nothing new is recorded: what is there has the room that it takes.
  options.spool_bytes_max = INT64_MAX;
  const auto sender = agent::Agent::Create(options, RealClock::Get());
  if (!sender.ok()) return Annotate(sender.status(), upload.directory);
  const bool was_stopped = SendAll(**sender, signals);
  const absl::StatusOr<agent::SpoolSurvey> after = agent::SurveySpool(place);
  if (!after.ok()) return after.status();
  UploadOutcome outcome = Compare(before, *after);
  TakeSummary((*sender)->summary(), outcome);
  outcome.was_stopped = was_stopped;
  return outcome;
}

int Complain(const std::string& text, int exit, Streams streams) {
  streams.err << "stepwell upload: " << text << "\n";
  return exit;
}

int Tell(UploadOutcome outcome, const Upload& upload, bool as_json, Streams streams) {
  outcome.root = upload.directory;
  outcome.server = upload.master.address;
  if (as_json) {
    streams.out << UploadJson(outcome);
  } else {
    streams.out << UploadText(outcome);
  }
  return ExitOf(outcome);
}

}  // namespace

int RunUpload(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("upload", "DIR", kExamples);
  options.Value("timeout", "TIME", "give up after so long without an answer, 1s ... 24h (1m)");
  options.Flag("named-files",
               "send trace files that lie outside of DIR, too, where it names some: only of a DIR "
               "that nobody else wrote");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const absl::StatusOr<absl::Duration> patience =
      options.Duration("timeout", absl::Minutes(1), absl::Seconds(1), absl::Hours(24));
  if (!patience.ok()) return options.UsageError(patience.status(), streams);
  Upload upload{options.argument(), options.master(), *patience};
  upload.sends_named_files = options.Has("named-files");
  if (!upload.master.tls.empty()) {
    auto opened = OpenTls(upload.master.tls);
    if (!opened.ok()) return options.UsageError(opened.status(), streams);
    upload.tls = *std::move(opened);
  }

  // Before anything in it is looked at, and after all that is root's own to read.
  const absl::StatusOr<std::string> place = BecomeOwnerOf(upload.directory);
  if (!place.ok()) return Complain(std::string(place.status().message()), kExitFailed, streams);
  absl::StatusOr<agent::SpoolSurvey> before = agent::SurveySpool(*place);
  if (before.ok()) before = AwaitLeavingAgent(*std::move(before), *place, kLeavingPatience);
  if (!before.ok()) {
    const int exit = absl::IsNotFound(before.status()) ? kExitNoInput : kExitFailed;
    const std::string where = *place == upload.directory ? "" : upload.directory + ": ";
    return Complain(where + std::string(before.status().message()), exit, streams);
  }
  before->root = upload.directory;
  if (const std::string reason = ReasonToRefuse(*before); !reason.empty()) {
    return Complain(reason, kExitAgain, streams);
  }
  if (!AnythingToSend(*before)) {
    return Tell(Compare(*before, *before), upload, options.json(), streams);
  }
  // Before any thread is started, so that all inherit it.
  const HeldSignals signals;
  const absl::Status answer = AskMaster(upload.master, signals);
  if (absl::IsUnavailable(answer) || absl::IsFailedPrecondition(answer)) {
    return ReportFailure(answer, upload.master.address, streams);
  }
  if (absl::IsCancelled(answer)) return Complain("stopped; nothing was sent", kExitAgain, streams);
  absl::StatusOr<UploadOutcome> outcome = Send(upload, *place, *before, signals);
  if (absl::IsAlreadyExists(outcome.status())) {
    return Complain(std::string(outcome.status().message()), kExitAgain, streams);
  }
  if (!outcome.ok()) return Complain(std::string(outcome.status().message()), kExitFailed, streams);
  return Tell(*std::move(outcome), upload, options.json(), streams);
}

}  // namespace stepwell::cli
