// stepwell read: raw samples of a trial, as lines of text or of JSON; those that are stored, or those that
// come from now on.
#include <ostream>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "client/cli/follow.h"
#include "client/cli/master_client.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/resumed_read.h"
#include "client/cli/sample_options.h"
#include "client/cli/samples_view.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

constexpr char kExamples[] =
    "\nTRIAL is a name, or id:7 for a number. Times are UTC; a duration means that long ago.\n"
    "Text: time, batch, value, series. JSON: one object per line; NaN and infinities are strings.\n"
    "Exits with 1 where no sample matches; stderr then says what there is. Where the master goes\n"
    "away, the read goes on when it comes back within a minute, and else exits with 69.\n"
    "With --follow samples are printed as the master acks them, until the trial ends, Ctrl-C, or\n"
    "nobody reads the output; a master that is gone is waited for, and nothing is left out.\n"
    "\nExamples:\n"
    "  stepwell read my-run --group training --name loss\n"
    "  stepwell read my-run --name cpu_util_simple --from 10m --limit 0\n"
    "  stepwell read my-run --group training --follow --lookback 30s\n"
    "  stepwell read id:7 --from 2026-11-20T10:00:00Z --to 2026-11-20T10:05:00Z --json\n";

// All that the view takes, over as many calls as it takes: whoever reads our output may do so for hours.
absl::Status ReadInto(SamplesView& view, const v1::ReadSamplesRequest& request,
                      MasterClient& master, Streams streams) {
  ResumedRead read(
      {.call = [&](const v1::ReadSamplesRequest& part,
                   const ResumedRead::Take& take) { return master.ReadSamples(part, take); },
       .wait =
           [](absl::Duration time) {
             absl::SleepFor(time);
             return true;
           },
       .on_break =
           [&](const absl::Status& why) {
             streams.out << std::flush;
             streams.err << BreakText(why, view.count());
           },
       .clock = RealClock::Get()});
  return read.Run(request, [&](const v1::ReadSamplesResponse& response) {
    streams.out << view.Lines(response);
    return !view.full() && streams.out.good();
  });
}

int TellFailure(const absl::Status& status, const SamplesView& view,
                const v1::ReadSamplesRequest& request, MasterClient& master,
                const std::string& address, Streams streams) {
  if (view.count() == 0) {
    return ReportTrialFailure(status, request.trial(), master, address, streams);
  }
  streams.err << "stepwell: incomplete after " << CountText(view.count())
              << " samples: " << status.message() << "\n";
  return absl::IsUnavailable(status) ? kExitUnavailable : kExitFailed;
}

}  // namespace

int RunRead(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("read", "TRIAL", kExamples);
  AddSampleOptions(options);
  options.Value("limit", "N", "at most so many samples, 0 = all (1000; with --follow 0)");
  options.Flag("follow", "samples from now on, as they come");
  options.Value("lookback", "TIME", "with --follow: and those of so long before, up to 1m (0s)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  if (options.Has("follow")) return Follow(options, streams);
  if (options.Has("lookback")) {
    return options.UsageError(absl::InvalidArgumentError("--lookback goes with --follow"), streams);
  }
  absl::StatusOr<v1::ReadSamplesRequest> request = SamplesRequestOf(options);
  if (!request.ok()) return options.UsageError(request.status(), streams);
  const absl::StatusOr<std::int64_t> limit = options.Integer("limit", 1000, 0, 1'000'000'000'000);
  if (!limit.ok()) return options.UsageError(limit.status(), streams);

  MasterClient master(options.master());
  SamplesView view(options.json() ? SamplesView::Form::kJson : SamplesView::Form::kText,
                   *limit == 0 ? INT64_MAX : *limit);
  const absl::Status status = ReadInto(view, *request, master, streams);
  streams.out << std::flush;
  if (!status.ok()) return TellFailure(status, view, *request, master, options.server(), streams);
  streams.err << view.Ending();
  if (view.count() > 0) return kExitOk;
  streams.err << "stepwell: " << NothingMatchedText(master, request->trial(), request->selector());
  return kExitFailed;
}

}  // namespace stepwell::cli
