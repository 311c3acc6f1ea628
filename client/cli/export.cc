// stepwell export: all raw samples of a trial, as CSV or JSON lines.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "client/cli/completeness_text.h"
#include "client/cli/export_lines.h"
#include "client/cli/export_output.h"
#include "client/cli/master_client.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/resumed_read.h"
#include "client/cli/sample_options.h"
#include "client/cli/stoppable.h"
#include "client/cli/units.h"
#include "fmt/format.h"

namespace stepwell::cli {
namespace {

constexpr char kExamples[] =
    "\nTRIAL is a name, or id:7 for a number. Times are UTC; a duration means that long ago. CSV "
    "has a\n"
    "head, labels as JSON, and an empty batch where there is none; JSON has one object per line, "
    "and -1\n"
    "there. Numbers read back exactly; NaN, Infinity and -Infinity are words. A FILE has its name "
    "once it\n"
    "is whole, and is replaced where it was there. Where the master goes away, the export goes on "
    "when it\n"
    "comes back within a minute.\n"
    "Exits with 0 where all that the master holds was written (what it knows to be missing is said "
    "on\n"
    "stderr), 1 where no sample matches, 69 where the master went away, 75 where it was stopped or "
    "the\n"
    "master was still recovering: run it again.\n"
    "\nExamples:\n"
    "  stepwell export my-run --output my-run.csv\n"
    "  stepwell export my-run --group training --format jsonl | gzip > loss.jsonl.gz\n"
    "  stepwell export id:7 --from 2026-11-20T10:00:00Z --to 2026-11-20T11:00:00Z | head\n";

struct Export {
  v1::ReadSamplesRequest request;
  ExportFormat format = ExportFormat::kCsv;
  std::string file;  // empty = standard output
};

absl::StatusOr<Export> ExportOf(const CommandOptions& options) {
  Export wanted;
  STEPWELL_ASSIGN_OR_RETURN(wanted.request, SamplesRequestOf(options));
  const std::string format = options.Text("format");
  if (format == "jsonl" || (format.empty() && options.json())) {
    wanted.format = ExportFormat::kJsonLines;
  } else if (!format.empty() && format != "csv") {
    return absl::InvalidArgumentError(
        absl::StrCat("--format is '", format, "'; allowed: csv, jsonl"));
  } else if (options.json()) {
    return absl::InvalidArgumentError("--json is --format jsonl; allowed: one of them");
  }
  wanted.file = options.Text("output");
  if (options.Has("output") && wanted.file.empty()) {
    return absl::InvalidArgumentError("--output is ''; allowed: the name of a file");
  }
  return wanted;
}

// Reads and writes on one thread, told to stop by another.
class Exporter {
 public:
  Exporter(MasterClient& master, const Export& wanted, ExportOutput& output, std::ostream& err)
      : master_(master), wanted_(wanted), output_(output), err_(err), lines_(wanted.format) {}

  // Of the read; written() is that of the output.
  absl::Status Run() {
    ResumedRead read(
        {.call = [&](const v1::ReadSamplesRequest& request,
                     const ResumedRead::Take& take) { return master_.ReadSamples(request, take); },
         .wait = [&](absl::Duration time) { return !stop_.WaitForNotificationWithTimeout(time); },
         .on_break = [&](const absl::Status& why) { err_ << BreakText(why, sample_count_); },
         .clock = RealClock::Get()});
    return read.Run(wanted_.request,
                    [&](const v1::ReadSamplesResponse& response) { return Take(response); });
  }
  // From another thread; any number of times.
  void Stop() {
    if (!stop_.HasBeenNotified()) stop_.Notify();
    master_.Cancel();
  }

  std::int64_t sample_count() const { return sample_count_; }
  const absl::Status& written() const { return written_; }
  const v1::Completeness& completeness() const { return completeness_; }

 private:
  bool Take(const v1::ReadSamplesResponse& response) {
    if (response.has_completeness()) completeness_ = response.completeness();
    if (response.values_size() == 0) return true;
    text_.clear();
    if (sample_count_ == 0) text_ = lines_.header();
    lines_.Append(response, text_);
    written_ = output_.Write(text_);
    if (!written_.ok()) return false;
    sample_count_ += response.values_size();
    return true;
  }

  MasterClient& master_;
  const Export& wanted_;
  ExportOutput& output_;
  std::ostream& err_;
  ExportLines lines_;
  std::string text_;
  absl::Status written_;
  v1::Completeness completeness_;
  std::atomic<std::int64_t> sample_count_ = 0;
  absl::Notification stop_;
};

// A line that is written over again and again, once it takes over 2 s. Only where stderr is a terminal and
// samples do not go to one.
class ExportProgress {
 public:
  explicit ExportProgress(bool to_file)
      : is_shown_(isatty(STDERR_FILENO) != 0 && (to_file || isatty(STDOUT_FILENO) == 0)) {}
  ~ExportProgress() {
    if (any_) Print("\r\033[K");
  }

  void Show(std::int64_t sample_count) {
    const SteadyTime now = SteadyTime::Now();
    if (!is_shown_ || now < next_) return;
    Print(fmt::format("\r{} samples ... {} s\033[K", CountText(sample_count),
                      absl::ToInt64Seconds(now - start_)));
    any_ = true;
    next_ = now + absl::Seconds(1);
  }

 private:
  // Not by std::cerr: that flushes std::cout first, which the other thread may hold for long.
  static void Print(const std::string& text) { std::fputs(text.c_str(), stderr); }

  const bool is_shown_;
  const SteadyTime start_ = SteadyTime::Now();
  SteadyTime next_ = start_ + absl::Seconds(2);
  bool any_ = false;
};

void TellUnwritten(const std::string& file, std::ostream& err) {
  if (!file.empty()) err << "stepwell: " << file << " was not written\n";
}

// What of it was left out or may be; 0 where nothing was.
int TellIncomplete(const v1::Completeness& completeness, const std::string& file,
                   std::ostream& err) {
  if (!completeness.contiguous()) err << CompletenessText(completeness) << "\n";
  if (!completeness.recovering()) return kExitOk;
  err << "stepwell: the master is reading its journal again: run it again for the last seconds\n";
  TellUnwritten(file, err);
  return kExitAgain;
}

int TellFailure(const absl::Status& read, const Exporter& exporter, const Export& wanted,
                MasterClient& master, const std::string& address, Streams streams) {
  const std::int64_t count = exporter.sample_count();
  if (absl::IsCancelled(read)) {
    streams.err << "stepwell: stopped after " << CountText(count) << " samples\n";
  } else if (count == 0) {
    return ReportTrialFailure(read, wanted.request.trial(), master, address, streams);
  } else {
    streams.err << "stepwell: incomplete after " << CountText(count)
                << " samples: " << read.message() << "\n";
  }
  TellUnwritten(wanted.file, streams.err);
  if (absl::IsCancelled(read)) return kExitAgain;
  return absl::IsUnavailable(read) ? kExitUnavailable : kExitFailed;
}

int WriteFailed(const absl::Status& written, Streams streams) {
  // Whoever reads has had enough.
  if (absl::IsOutOfRange(written)) return kExitOk;
  streams.err << "stepwell: " << written.message() << "\n";
  return kExitFailed;
}

int RunExportTo(ExportOutput& output, const Export& wanted, const CommandOptions& options,
                Streams streams) {
  // Before any thread is started, so that all inherit it.
  const HeldSignals signals;
  MasterClient master(options.master());
  Exporter exporter(master, wanted, output, streams.err);
  absl::Status read;
  {
    ExportProgress progress(!wanted.file.empty());
    const auto stop = [&, stop_count = 0]() mutable {
      // A pipe that nobody empties holds the other thread; no file is left behind then.
      if (++stop_count > 1 && wanted.file.empty()) _exit(kExitAgain);
      exporter.Stop();
    };
    RunStoppable(
        signals, "stepwell-export", [&] { read = exporter.Run(); }, stop,
        [&] { progress.Show(exporter.sample_count()); });
  }
  if (!exporter.written().ok()) return WriteFailed(exporter.written(), streams);
  if (!read.ok()) return TellFailure(read, exporter, wanted, master, options.server(), streams);
  if (exporter.sample_count() == 0) {
    streams.err << "stepwell: "
                << NothingMatchedText(master, wanted.request.trial(), wanted.request.selector());
    return kExitFailed;
  }
  const int exit = TellIncomplete(exporter.completeness(), wanted.file, streams.err);
  if (exit != kExitOk) return exit;
  if (const absl::Status whole = output.Finish(); !whole.ok()) return WriteFailed(whole, streams);
  if (!wanted.file.empty()) {
    streams.err << CountText(exporter.sample_count()) << " samples are in " << wanted.file << "\n";
  }
  return kExitOk;
}

}  // namespace

int RunExport(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("export", "TRIAL", kExamples);
  AddSampleOptions(options);
  options.Value("format", "FORMAT", "csv or jsonl (csv)");
  options.Value("output", "FILE", "write to FILE, which has its name once it is whole");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const absl::StatusOr<Export> wanted = ExportOf(options);
  if (!wanted.ok()) return options.UsageError(wanted.status(), streams);
  if (wanted->file.empty()) {
    return RunExportTo(*ExportOutput::ToStream(streams.out), *wanted, options, streams);
  }
  const auto output = ExportOutput::ToFile(wanted->file);
  if (!output.ok()) return WriteFailed(output.status(), streams);
  return RunExportTo(**output, *wanted, options, streams);
}

}  // namespace stepwell::cli
