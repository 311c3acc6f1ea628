// stepwell top: where the time of a running trial goes and what its machines do, now.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/machine_name.h"
#include "client/cli/master_client.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/pages.h"
#include "client/cli/progress.h"
#include "client/cli/top_data.h"
#include "client/cli/top_poller.h"
#include "client/cli/top_screen.h"
#include "client/cli/top_view.h"

namespace stepwell::cli {
namespace {

constexpr char kExamples[] =
    "\nWithout TRIAL: the newest one that is running. TRIAL is a name, or id:7 for a number. With\n"
    "--machine the argument names a machine (this one): what it does for all trials on it.\n"
    "Keys: q ends, a shows all metrics, arrows and space move. Where the output is no terminal, it "
    "is one look, as with\n"
    "--once. Colours: not with NO_COLOR; blocks rather than ASCII where the locale is UTF-8.\n"
    "\nExamples:\n"
    "  stepwell top\n"
    "  stepwell top my-run --interval 250ms\n"
    "  stepwell top --machine\n"
    "  stepwell top my-run --once --all\n"
    "  stepwell top my-run --json | jq '.metrics[] | {name, labels, value}'\n";

// Of one look that goes into a file or a pipe.
constexpr int kPlainColumns = 80;

absl::StatusOr<TopTarget> TargetOf(const CommandOptions& options) {
  TopTarget target;
  if (options.Has("machine")) {
    if (!options.project().empty()) {
      return absl::InvalidArgumentError("--project goes with a TRIAL; --machine names no trial");
    }
    target.machine = options.argument().empty() ? MachineName() : options.argument();
    return target;
  }
  if (options.argument().empty()) {
    if (options.project().empty()) return target;
    return absl::InvalidArgumentError("--project goes with a TRIAL; none is given");
  }
  absl::StatusOr<v1::TrialRef> trial = ParseTrialRef(options.argument(), options.project());
  if (!trial.ok()) return trial.status();
  target.trial = *std::move(trial);
  return target;
}

bool IsLive(const CommandOptions& options, const std::ostream& out) {
  return &out == &std::cout && !options.Has("once") && !options.json() &&
         TopScreen::CanShow(STDOUT_FILENO);
}

std::string KeysText(const TopLook& look, bool scrolls) {
  return TopLine(look)
      .Add(absl::StrCat("q ends   a ", look.all_metrics ? "fewer" : "all", " metrics",
                        scrolls ? "   arrows, space move" : ""),
           Tone::kDim)
      .Take();
}

void RunLive(MasterClient& master, TopReader& reader, TopData first, absl::Duration interval,
             TopLook look) {
  TopScreen screen(STDIN_FILENO, STDOUT_FILENO);
  TopPoller poller(master, reader, std::move(first), interval);
  int skip = 0;
  while (true) {
    const TopPoller::Look now = poller.Take();
    const TopScreen::Size size = screen.size();
    look.columns = size.columns;
    // The last row is for the keys.
    const int rows = std::max(size.rows - 1, 1);
    const int page = std::max(rows - 3, 1);
    std::vector<std::string> lines = TopFrame(*now.data, now.outage, look);
    const bool scrolls = std::ssize(lines) > rows;
    lines = TopWindow(std::move(lines), rows, look, skip);
    lines.resize(static_cast<std::size_t>(rows));
    lines.push_back(KeysText(look, scrolls));
    screen.Draw(lines);
    switch (screen.Wait(poller.wake_fd())) {
      case TopScreen::Event::kQuit:
        return;
      case TopScreen::Event::kToggleAll:
        look.all_metrics = !look.all_metrics;
        break;
      case TopScreen::Event::kUp:
        --skip;
        break;
      case TopScreen::Event::kDown:
        ++skip;
        break;
      case TopScreen::Event::kPageUp:
        skip -= page;
        break;
      case TopScreen::Event::kPageDown:
        skip += page;
        break;
      case TopScreen::Event::kRedraw:
      case TopScreen::Event::kWoken:
        break;
    }
  }
}

// The text or the JSON of one look.
std::string OneLook(const TopData& data, TopLook look, const CommandOptions& options,
                    const std::ostream& out) {
  if (options.json()) {
    return ToJson(data).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  if (&out == &std::cout && isatty(STDOUT_FILENO) != 0) {
    look.columns = TopScreen::SizeOf(STDOUT_FILENO).columns;
  }
  return absl::StrJoin(TopFrame(data, {}, look), "\n") + "\n";
}

int ReportNothing(const absl::Status& status, const TopReader& reader, MasterClient& master,
                  const CommandOptions& options, Streams streams) {
  if (!reader.target().any_trial() || !absl::IsNotFound(status)) {
    return ReportTrialFailure(status, reader.target().trial, master, options.server(), streams);
  }
  const int exit = ReportFailure(status, options.server(), streams);
  const auto newest = ReadTrials(master, v1::ListTrialsRequest(), 8);
  if (newest.ok()) streams.err << KnownTrialsText(*newest);
  return exit;
}

}  // namespace

int RunTop(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("top", "[TRIAL]", kExamples);
  options.Value("project", "P", "the project of TRIAL (default)");
  options.Flag("machine", "show a machine rather than a trial");
  options.Value("interval", "TIME", "between two looks, 100ms ... 1h (1s)");
  options.Flag("once", "print one look and end");
  options.Flag("all", "every metric, not just those that most people look for");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  absl::StatusOr<TopTarget> target = TargetOf(options);
  if (!target.ok()) return options.UsageError(target.status(), streams);
  const absl::StatusOr<absl::Duration> interval =
      options.Duration("interval", absl::Seconds(1), absl::Milliseconds(100), absl::Hours(1));
  if (!interval.ok()) return options.UsageError(interval.status(), streams);

  MasterClient master(options.master());
  TopReader reader(master, *std::move(target));
  absl::StatusOr<TopData> data = absl::UnknownError("");
  {
    const Progress progress("reading");
    data = reader.Read();
  }
  if (!data.ok()) return ReportNothing(data.status(), reader, master, options, streams);
  const TopLook look{.columns = kPlainColumns,
                     .charset = CharsetOfLocale(),
                     .paint = PaintFor(streams.out),
                     .all_metrics = options.Has("all")};
  if (IsLive(options, streams.out)) {
    RunLive(master, reader, *std::move(data), *interval, look);
  } else {
    streams.out << OneLook(*data, look, options, streams.out);
  }
  return kExitOk;
}

}  // namespace stepwell::cli
