// stepwell trace report: where the time of the steps in native profilers' traces went, in files or at a master.
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "base/trace/step_breakdown.h"
#include "client/cli/command.h"
#include "client/cli/master_client.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/profile_reading.h"
#include "client/cli/progress.h"
#include "client/cli/table.h"
#include "client/cli/terminal.h"
#include "client/cli/trace_pages.h"
#include "client/cli/trace_report_ranks.h"
#include "client/cli/trace_words.h"
#include "client/cli/units.h"
#include "client/traces/trace_file.h"

namespace stepwell::cli {
namespace {

constexpr double kNs = 1e-9;
constexpr std::size_t kStepsShown = 20;
constexpr std::int32_t kStepsAsked = 10'000;
constexpr char kExamples[] =
    "\nFILE is a trace of PyTorch's profiler (Kineto), gzip or not. Each moment of a step counts "
    "for the first of\n"
    "these that was busy then: kernel, memcpy, memset, communication, runtime, data loader, "
    "processor, other; so\n"
    "loading that hides behind kernels is no loader time. `overlap` is the part of communication "
    "during which\n"
    "kernels computed (of a trace without any: operators), `idle` what no device did anything "
    "in.\n"
    "Several are one table, a row for each rank, of which the trace or its file's name tells: "
    "computation,\n"
    "communication and their overlap, and of each collective how much of it was waiting for other "
    "ranks: what\n"
    "it took longer than on the rank where it was shortest.\n"
    "Exits with 0 where there was a step, 1 where there was none, 66 where the file cannot be "
    "read.\n"
    "\nExamples:\n"
    "  stepwell trace report rank0.7.pt.trace.json.gz\n"
    "  stepwell trace report traces/*.pt.trace.json.gz\n"
    "  stepwell trace report --trial my-run 3\n"
    "  stepwell trace report --trial my-run --json | jq '.ranks[] | {rank, wait_seconds}'\n"
    "  stepwell trace report trace.json --json | jq '.steps[0]'\n";

double Part(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Where its steps are, and what else is to be told of it.
struct Reported {
  ReadProfile profile;
  StepTimes sum;
  std::int64_t step_count = 0;  // those of a master may be more than it answers one by one
};

std::vector<std::string> Percents(const StepTimes& step) {
  std::vector<double> shares;
  for (const std::int64_t ns : step.class_ns) shares.push_back(Part(ns, step.length_ns()));
  return PercentTexts(shares);
}

std::string ReportText(const Reported& reported, const Paint& paint) {
  const StepReport& report = reported.profile.report;
  const StepTimes& sum = reported.sum;
  const auto count = static_cast<double>(reported.step_count);
  std::string text = absl::StrCat(paint.Bold(Plural(reported.step_count, "step")), " of ",
                                  SecondsText(static_cast<double>(sum.length_ns()) * kNs / count),
                                  " on average\n\n");
  Table classes({{"class"}, {"a step", Align::kRight}, {"share", Align::kRight}, {""}});
  const std::vector<std::string> percents = Percents(sum);
  for (std::size_t i = 0; i < kStepClassCount; ++i) {
    if (sum.class_ns[i] == 0) continue;
    classes.Add({StepClassName(static_cast<StepClass>(i)),
                 SecondsText(static_cast<double>(sum.class_ns[i]) * kNs / count), percents[i],
                 BarText(Part(sum.class_ns[i], sum.length_ns()), 30)});
  }
  text += classes.Text(paint, "  ");
  if (report.has_device) {
    absl::StrAppend(&text, "\n  device busy ",
                    PercentTexts({Part(report.device_busy_ns, report.device_span_ns)})[0],
                    " from its first event to its last");
    if (sum.idle_ns) {
      absl::StrAppend(&text, ", idle ",
                      SecondsText(static_cast<double>(*sum.idle_ns) * kNs / count), " a step");
    }
    text += "\n";
  }
  if (sum.communicating_ns > 0) {
    absl::StrAppend(&text, "  communication ",
                    SecondsText(static_cast<double>(sum.communicating_ns) * kNs / count),
                    " a step, overlap ",
                    PercentTexts({Part(sum.overlap_ns, sum.communicating_ns)})[0], "\n");
  }
  if (report.steps.size() > 1) {
    std::vector<Table::Column> columns = {{"step"}, {"length", Align::kRight}};
    for (std::size_t i = 0; i < kStepClassCount; ++i) {
      if (sum.class_ns[i] > 0)
        columns.push_back({StepClassName(static_cast<StepClass>(i)), Align::kRight});
    }
    Table steps(std::move(columns));
    for (std::size_t at = 0; at < std::min(report.steps.size(), kStepsShown); ++at) {
      const StepTimes& step = report.steps[at];
      std::vector<std::string> cells = {Printable(step.name),
                                        SecondsText(static_cast<double>(step.length_ns()) * kNs)};
      const std::vector<std::string> of_step = Percents(step);
      for (std::size_t i = 0; i < kStepClassCount; ++i) {
        if (sum.class_ns[i] > 0) cells.push_back(of_step[i]);
      }
      steps.Add(std::move(cells));
    }
    absl::StrAppend(&text, "\n", steps.Text(paint, "  "));
    if (report.steps.size() > kStepsShown) {
      absl::StrAppend(
          &text, "  and ",
          Plural(reported.step_count - static_cast<std::int64_t>(kStepsShown), "more step"),
          " (--json has all)\n");
    }
  }
  return text;
}

nlohmann::json JsonOf(const StepTimes& step) {
  nlohmann::json classes;
  for (std::size_t i = 0; i < kStepClassCount; ++i) {
    classes[StepClassName(static_cast<StepClass>(i))] = static_cast<double>(step.class_ns[i]) * kNs;
  }
  nlohmann::json json = {
      {"name", step.name},
      {"seconds", static_cast<double>(step.length_ns()) * kNs},
      {"class_seconds", classes},
      {"computing_seconds", static_cast<double>(step.computing_ns) * kNs},
      {"communicating_seconds", static_cast<double>(step.communicating_ns) * kNs},
      {"overlap_seconds", static_cast<double>(step.overlap_ns) * kNs},
      {"idle_seconds", nullptr}};
  if (step.idle_ns) json["idle_seconds"] = static_cast<double>(*step.idle_ns) * kNs;
  return json;
}

nlohmann::json JsonOf(const StepReport& report) {
  nlohmann::json steps = nlohmann::json::array();
  for (const StepTimes& step : report.steps) steps.push_back(JsonOf(step));
  return {{"steps", steps},
          {"steps_left_out", report.steps_left_out},
          {"has_device", report.has_device},
          {"device_busy_seconds", static_cast<double>(report.device_busy_ns) * kNs},
          {"device_span_seconds", static_cast<double>(report.device_span_ns) * kNs}};
}

StepTimes TimesOf(const v1::TraceStepTimes& wire) {
  StepTimes step;
  step.name = wire.name();
  step.end_ns = wire.length_ns();
  step.class_ns = {wire.kernel_ns(),        wire.memcpy_ns(),  wire.memset_ns(),
                   wire.communication_ns(), wire.runtime_ns(), wire.data_loader_ns(),
                   wire.processor_ns(),     wire.other_ns()};
  step.computing_ns = wire.computing_ns();
  step.communicating_ns = wire.communicating_ns();
  step.overlap_ns = wire.overlap_ns();
  if (wire.has_idle_ns()) step.idle_ns = wire.idle_ns();
  return step;
}

Reported OfAnswer(const v1::SummarizeTraceResponse& answer) {
  Reported reported;
  StepReport& report = reported.profile.report;
  for (const v1::TraceStepTimes& step : answer.steps()) report.steps.push_back(TimesOf(step));
  report.steps_left_out = answer.steps_left_out();
  report.has_device = answer.has_device();
  report.device_busy_ns = answer.device_busy_ns();
  report.device_span_ns = answer.device_span_ns();
  report.events_over_bound = answer.events_over_bound();
  reported.profile.bad_count = answer.bad_count();
  reported.profile.is_cut = answer.is_cut();
  reported.sum = TimesOf(answer.total());
  reported.step_count = answer.step_count();
  return reported;
}

int Print(const Reported& reported, const std::string& name, const CommandOptions& options,
          Streams streams) {
  TellLeftOut(reported.profile, "", streams.err);
  if (reported.profile.report.steps.empty()) {
    TellNoSteps(name, streams.err);
    return kExitFailed;
  }
  if (options.json()) {
    streams.out << JsonOf(reported.profile.report)
                       .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                << "\n";
  } else {
    streams.out << ReportText(reported, PaintFor(streams.out));
  }
  return kExitOk;
}

int ReportStored(const CommandOptions& options, Streams streams) {
  const auto trial = ParseTrialRef(options.Text("trial"), options.project());
  if (!trial.ok()) return options.UsageError(trial.status(), streams);
  const auto trace_no = ParseTraceNo(options.argument());
  if (!trace_no.ok()) return options.UsageError(trace_no.status(), streams);
  v1::SummarizeTraceRequest request;
  *request.mutable_trial() = *trial;
  request.set_trace_no(*trace_no);
  request.set_steps_max(kStepsAsked);
  MasterClient master(options.master());
  const auto answer = master.SummarizeTrace(request);
  if (!answer.ok()) {
    return ReportTrialFailure(answer.status(), *trial, master, options.server(), streams);
  }
  return Print(OfAnswer(*answer), absl::StrCat("trace ", *trace_no), options, streams);
}

}  // namespace

int RunTraceReport(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("trace report", "[FILE...]", kExamples);
  options.Value("trial", "TRIAL",
                "FILEs are numbers of traces of TRIAL that the master keeps; none: all of native "
                "profilers");
  options.Value("project", "P", "the project of TRIAL (default)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  if (options.arguments().empty() && !options.Has("trial")) {
    return options.UsageError(absl::InvalidArgumentError("FILE is missing"), streams);
  }
  if (options.arguments().size() != 1) return ReportRanks(options, streams);
  const Progress progress(absl::StrCat("reading ", options.argument()));
  if (options.Has("trial")) return ReportStored(options, streams);
  auto profile = ReadProfileOf(traces::SourceOfFile(options.argument()), {});
  if (!profile.ok()) {
    const absl::Status failed = traces::Named(profile.status(), options.argument());
    const bool is_absent = absl::IsNotFound(failed);
    streams.err << "stepwell: " << Printable(std::string(failed.message()))
                << (is_absent ? Printable(TrialHint(options.argument())) : "") << "\n";
    return is_absent ? kExitNoInput : kExitFailed;
  }
  Reported reported;
  reported.profile = *std::move(profile);
  reported.sum = SumOf(reported.profile.report);
  reported.step_count = std::ssize(reported.profile.report.steps);
  return Print(reported, options.argument(), options, streams);
}

}  // namespace stepwell::cli
