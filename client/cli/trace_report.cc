// stepwell trace report: where the time of the steps in a native profiler's trace went.
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "base/trace/step_breakdown.h"
#include "client/cli/command.h"
#include "client/cli/options.h"
#include "client/cli/progress.h"
#include "client/cli/table.h"
#include "client/cli/trace_file.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

constexpr double kNs = 1e-9;
constexpr std::size_t kStepsShown = 20;
constexpr char kExamples[] =
    "\nFILE is a trace of PyTorch's profiler (Kineto), gzip or not. Each moment of a step counts "
    "for the first of\n"
    "these that was busy then: kernel, memcpy, memset, communication, runtime, data loader, "
    "processor, other; so\n"
    "loading that hides behind kernels is no loader time. `overlap` is the part of communication "
    "during which\n"
    "kernels computed.\n"
    "Exits with 0 where there was a step, 1 where there was none, 66 where the file cannot be "
    "read.\n"
    "\nExamples:\n"
    "  stepwell trace report rank0.7.pt.trace.json.gz\n"
    "  stepwell trace report trace.json --json | jq '.steps[0]'\n";

double Part(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// All steps as one.
StepTimes SumOf(const StepReport& report) {
  StepTimes sum;
  for (const StepTimes& step : report.steps) {
    sum.end_ns += step.length_ns();
    for (std::size_t i = 0; i < kStepClassCount; ++i) sum.class_ns[i] += step.class_ns[i];
    sum.computing_ns += step.computing_ns;
    sum.communicating_ns += step.communicating_ns;
    sum.overlap_ns += step.overlap_ns;
  }
  return sum;
}

std::vector<std::string> Percents(const StepTimes& step) {
  std::vector<double> shares;
  for (const std::int64_t ns : step.class_ns) shares.push_back(Part(ns, step.length_ns()));
  return PercentTexts(shares);
}

std::string ReportText(const StepReport& report, const Paint& paint) {
  const StepTimes sum = SumOf(report);
  const auto count = static_cast<double>(report.steps.size());
  std::string text = absl::StrCat(paint.Bold(Plural(std::ssize(report.steps), "step")), " of ",
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
                    " from its first event to its last\n");
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
          Plural(std::ssize(report.steps) - static_cast<std::int64_t>(kStepsShown), "more step"),
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
  return {{"name", step.name},
          {"seconds", static_cast<double>(step.length_ns()) * kNs},
          {"class_seconds", classes},
          {"computing_seconds", static_cast<double>(step.computing_ns) * kNs},
          {"communicating_seconds", static_cast<double>(step.communicating_ns) * kNs},
          {"overlap_seconds", static_cast<double>(step.overlap_ns) * kNs}};
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

void TellLeftOut(const StepReport& report, const TraceForm& form, std::int64_t bad_count,
                 std::ostream& err) {
  if (form.is_cut) err << "stepwell: the trace ends too early; what it has is counted\n";
  if (bad_count + form.passed_over > 0) {
    err << "stepwell: " << Plural(bad_count + form.passed_over, "thing")
        << " that is no event left out\n";
  }
  if (report.steps_left_out > 0) {
    err << "stepwell: " << Plural(report.steps_left_out, "step")
        << " at the end left out: recording stopped before the device's part\n";
  }
  if (report.events_over_bound > 0) {
    err << "stepwell: " << Plural(report.events_over_bound, "event") << " beyond the first "
        << CountText(static_cast<std::int64_t>(StepBreakdown::kEventsMax)) << " not counted\n";
  }
}

}  // namespace

int RunTraceReport(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("trace report", "FILE", kExamples, CommandOptions::Asks::kNobody);
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const Progress progress(absl::StrCat("reading ", options.argument()));
  StepBreakdown breakdown;
  TraceEventParser parser;
  std::int64_t bad_count = 0;
  const auto form = ReadTraceFile(options.argument(), {.event =
                                                           [&](std::string_view json) {
                                                             if (parser.Parse(json)) {
                                                               breakdown.TakeEvent(parser.event());
                                                             } else {
                                                               ++bad_count;
                                                             }
                                                             return absl::OkStatus();
                                                           },
                                                       .member = {}});
  if (!form.ok()) {
    streams.err << "stepwell: " << form.status().message() << "\n";
    return absl::IsNotFound(form.status()) ? kExitNoInput : kExitFailed;
  }
  const StepReport report = breakdown.Finish();
  TellLeftOut(report, *form, bad_count, streams.err);
  if (report.steps.empty()) {
    streams.err << "stepwell: " << options.argument()
                << " has no step and no operator of PyTorch's profiler\n";
    return kExitFailed;
  }
  if (options.json()) {
    streams.out << JsonOf(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                << "\n";
  } else {
    streams.out << ReportText(report, PaintFor(streams.out));
  }
  return kExitOk;
}

}  // namespace stepwell::cli
