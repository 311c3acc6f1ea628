#include "client/cli/trace_report_ranks.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/bounded_math.h"
#include "base/trace/rank_breakdown.h"
#include "client/cli/master_client.h"
#include "client/cli/not_found.h"
#include "client/cli/profile_reading.h"
#include "client/cli/progress.h"
#include "client/cli/stored_trace.h"
#include "client/cli/table.h"
#include "client/cli/trace_pages.h"
#include "client/cli/units.h"
#include "client/traces/trace_file.h"

namespace stepwell::cli {
namespace {

constexpr double kNs = 1e-9;
// Beside each other on one line; all are in JSON.
constexpr std::size_t kNamesShown = 4;

struct Input {
  std::string name;  // for people
  std::optional<std::int32_t> rank = {};
  TraceSource source = {};
};

// Ranks by number, then who tells none, by name.
struct Worker {
  std::optional<std::int32_t> rank;
  std::string name;
  std::vector<std::string> traces = {};

  auto Key() const { return std::tuple(!rank.has_value(), rank.value_or(0), name); }
};

class Gathering {
 public:
  void Add(const Input& input, ReadProfile profile, std::ostream& err) {
    TellLeftOut(profile, absl::StrCat(" of ", input.name), err);
    const std::optional<std::int32_t> rank = input.rank ? input.rank : profile.rank;
    const Worker worker = {rank, rank ? absl::StrCat("rank ", *rank) : input.name};
    const auto [known, is_new] = numbers_.try_emplace(worker.Key(), workers_.size());
    if (is_new) workers_.push_back(worker);
    const std::size_t number = known->second;
    const std::int64_t outside_count = profile.report.collectives_left_out;
    const auto step_count = std::ssize(profile.report.steps);
    if (!breakdown_.Add(number, std::move(profile.report))) {
      err << "stepwell: " << Printable(input.name) << ": its " << Plural(step_count, "step")
          << " are more than one report holds beside the others'; left out\n";
      return;
    }
    outside_count_ += outside_count;
    workers_[number].traces.push_back(input.name);
  }

  struct Whole {
    std::vector<std::pair<Worker, RankRow>> rows;
    std::int64_t unmatched_count = 0;
    std::int64_t roomless_count = 0;
    std::int64_t outside_count = 0;
  };
  Whole Finish() {
    RankReport report = breakdown_.Finish();
    Whole whole = {{}, report.unmatched_count, report.roomless_count, outside_count_};
    for (const auto& [key, number] : numbers_) {
      if (report.ranks[number].steps.empty()) continue;  // none of its traces found room
      whole.rows.emplace_back(std::move(workers_[number]), std::move(report.ranks[number]));
    }
    return whole;
  }

 private:
  std::map<decltype(Worker().Key()), std::size_t> numbers_;
  std::vector<Worker> workers_;
  RankBreakdown breakdown_;
  std::int64_t outside_count_ = 0;
};

std::string RankText(const Worker& worker) {
  return worker.rank ? absl::StrCat(*worker.rank) : Printable(worker.name);
}

// A step's part of `ns`.
std::string StepText(std::int64_t ns, const RankRow& row) {
  return SecondsText(static_cast<double>(ns) * kNs / static_cast<double>(row.steps.size()));
}

std::string BusyText(const RankRow& row) {
  if (row.device_span_ns == 0) return "";
  return PercentTexts(
      {static_cast<double>(row.device_busy_ns) / static_cast<double>(row.device_span_ns)})[0];
}

// Those on which most was waited, first.
std::vector<std::string> NamesByWait(const Gathering::Whole& whole) {
  std::map<std::string, std::int64_t> waits;
  for (const auto& [worker, row] : whole.rows) {
    for (const auto& [name, times] : row.collectives) {
      waits[name] = BoundedSum(waits[name], times.wait_ns);
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, wait_ns] : waits) names.push_back(name);
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return waits[a] > waits[b]; });
  return names;
}

std::string WaitsText(const Gathering::Whole& whole, const Paint& paint) {
  const std::vector<std::string> names = NamesByWait(whole);
  if (names.empty()) return "";
  const std::size_t shown = std::min(names.size(), kNamesShown);
  std::vector<Table::Column> columns = {
      {"rank"}, {"transfer", Align::kRight}, {"waited", Align::kRight}};
  for (std::size_t i = 0; i < shown; ++i) {
    columns.push_back({absl::StrCat("in ", Printable(names[i])), Align::kRight});
  }
  Table table(std::move(columns));
  for (const auto& [worker, row] : whole.rows) {
    if (row.collectives.empty()) continue;
    std::vector<std::string> cells = {RankText(worker), StepText(row.sum.transfer_ns, row),
                                      StepText(row.sum.wait_ns, row)};
    for (std::size_t i = 0; i < shown; ++i) {
      const auto found = row.collectives.find(names[i]);
      cells.push_back(found == row.collectives.end() ? "" : StepText(found->second.wait_ns, row));
    }
    table.Add(std::move(cells));
  }
  std::string text =
      absl::StrCat("\ncollectives, a step: transfer, and what waited for other ranks\n\n",
                   table.Text(paint, "  "));
  if (names.size() > shown) {
    absl::StrAppend(&text, "  and ",
                    Plural(static_cast<std::int64_t>(names.size() - shown), "more collective"),
                    " (--json has all)\n");
  }
  return text;
}

std::string RanksText(const Gathering::Whole& whole, const Paint& paint) {
  const bool has_device = std::any_of(whole.rows.begin(), whole.rows.end(), [](const auto& each) {
    return each.second.device_span_ns > 0;
  });
  std::vector<Table::Column> columns = {{"rank"},
                                        {"steps", Align::kRight},
                                        {"a step", Align::kRight},
                                        {"computation", Align::kRight},
                                        {"overlap", Align::kRight},
                                        {"communication", Align::kRight},
                                        {"other", Align::kRight}};
  if (has_device) {
    columns.push_back({"idle", Align::kRight});
    columns.push_back({"device busy", Align::kRight});
  }
  Table table(std::move(columns));
  for (const auto& [worker, row] : whole.rows) {
    std::vector<std::string> cells = {RankText(worker),
                                      CountText(std::ssize(row.steps)),
                                      StepText(row.sum.length_ns, row),
                                      StepText(row.sum.computation_ns, row),
                                      StepText(row.sum.overlap_ns, row),
                                      StepText(row.sum.communication_ns, row),
                                      StepText(row.sum.other_ns, row)};
    if (has_device) {
      cells.push_back(row.sum.idle_ns ? StepText(*row.sum.idle_ns, row) : "");
      cells.push_back(BusyText(row));
    }
    table.Add(std::move(cells));
  }
  return absl::StrCat(paint.Bold(Plural(std::ssize(whole.rows), "rank")), "\n\n",
                      table.Text(paint, "  "), WaitsText(whole, paint));
}

void AddTimes(const RankTimes& times, nlohmann::ordered_json& json) {
  const std::pair<const char*, std::int64_t> members[] = {
      {"seconds", times.length_ns},          {"computation_seconds", times.computation_ns},
      {"overlap_seconds", times.overlap_ns}, {"communication_seconds", times.communication_ns},
      {"other_seconds", times.other_ns},     {"transfer_seconds", times.transfer_ns},
      {"wait_seconds", times.wait_ns}};
  for (const auto& [name, ns] : members) json[name] = static_cast<double>(ns) * kNs;
  json["idle_seconds"] = nullptr;
  if (times.idle_ns) json["idle_seconds"] = static_cast<double>(*times.idle_ns) * kNs;
}

nlohmann::ordered_json JsonOf(const Worker& worker, const RankRow& row) {
  nlohmann::ordered_json json = {
      {"rank", nullptr}, {"traces", worker.traces}, {"step_count", row.steps.size()}};
  if (worker.rank) json["rank"] = *worker.rank;
  AddTimes(row.sum, json);
  json["device_busy_seconds"] = static_cast<double>(row.device_busy_ns) * kNs;
  json["device_span_seconds"] = static_cast<double>(row.device_span_ns) * kNs;
  json["collectives"] = nlohmann::ordered_json::array();
  for (const auto& [name, times] : row.collectives) {
    json["collectives"].push_back(
        {{"name", name},
         {"call_count", times.call_count},
         {"transfer_seconds", static_cast<double>(times.transfer_ns) * kNs},
         {"wait_seconds", static_cast<double>(times.wait_ns) * kNs}});
  }
  json["steps"] = nlohmann::ordered_json::array();
  for (const RankStep& step : row.steps) {
    nlohmann::ordered_json one = {{"name", step.name}};
    AddTimes(step.times, one);
    json["steps"].push_back(std::move(one));
  }
  return json;
}

int Print(const Gathering::Whole& whole, const CommandOptions& options, Streams streams) {
  if (whole.unmatched_count > 0) {
    streams.err << "stepwell: " << Plural(whole.unmatched_count, "call")
                << " of collectives counted as no waiting: other ranks do not have them, or not as "
                   "many in that step\n";
  }
  if (whole.roomless_count > 0) {
    streams.err
        << "stepwell: " << Plural(whole.roomless_count, "call")
        << " of collectives beyond what is held at once, or at the place of such in another "
           "rank, counted as no waiting\n";
  }
  if (whole.outside_count > 0) {
    streams.err << "stepwell: " << Plural(whole.outside_count, "call")
                << " of collectives outside of any step, or beyond what is held at once, not "
                   "counted\n";
  }
  if (!options.json()) {
    streams.out << RanksText(whole, PaintFor(streams.out));
    return kExitOk;
  }
  nlohmann::ordered_json json = {{"ranks", nlohmann::ordered_json::array()},
                                 {"unmatched_count", whole.unmatched_count},
                                 {"roomless_count", whole.roomless_count}};
  for (const auto& [worker, row] : whole.rows) json["ranks"].push_back(JsonOf(worker, row));
  streams.out << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  return kExitOk;
}

absl::StatusOr<std::vector<Input>> StoredInputs(const CommandOptions& options,
                                                const v1::TrialRef& trial, MasterClient& master) {
  std::vector<std::int32_t> trace_nos;
  for (const std::string& text : options.arguments()) {
    const absl::StatusOr<std::int32_t> trace_no = ParseTraceNo(text);
    if (!trace_no.ok()) return trace_no.status();
    trace_nos.push_back(*trace_no);
  }
  const auto list = ReadTraces(master, trial);
  if (!list.ok()) return list.status();
  const auto chosen = ChooseTraces(*list, trace_nos);
  if (!chosen.ok()) return chosen.status();
  std::vector<Input> inputs;
  for (const v1::Trace& trace : *chosen) {
    const v1::TraceHeader& header = trace.header();
    // What profilers write; of these some are none's, which is seen as they are read.
    if (trace_nos.empty() && header.format() != v1::TRACE_FORMAT_CHROME_JSON) continue;
    Input& input = inputs.emplace_back(
        Input{.name = StoredTraceLabel(trace), .source = SourceOfStored(master, trial, trace)});
    input.rank = header.has_rank() ? std::optional(header.rank()) : RankOfTraceName(header.name());
  }
  return inputs;
}

std::vector<Input> FileInputs(const CommandOptions& options) {
  std::vector<Input> inputs;
  for (const std::string& file : options.arguments()) {
    inputs.push_back(
        {.name = file, .rank = RankOfTraceName(file), .source = traces::SourceOfFile(file)});
  }
  return inputs;
}

// What was asked for: of all of a trial some are no profile, and are passed over.
enum class Asked { kThese, kAll };

// Of a trace that fails: whether it is the trace, not who sends it.
class Blame {
 public:
  TraceSource Watch(const TraceSource& source) {
    return [&source, this](const TakeBytes& take) {
      absl::Status taken;
      const absl::Status sent = source([&](std::string_view bytes) { return taken = take(bytes); });
      is_senders_ = !sent.ok() && taken.ok() && !absl::IsDataLoss(sent);
      return sent;
    };
  }
  bool is_senders() const { return is_senders_; }

 private:
  bool is_senders_ = false;
};

absl::StatusOr<Gathering::Whole> Gather(const std::vector<Input>& inputs, Asked asked,
                                        std::ostream& err) {
  Progress progress("reading traces");
  Gathering gathering;
  for (const Input& input : inputs) {
    progress.Say(absl::StrCat("reading ", Printable(input.name)));
    Blame blame;
    absl::StatusOr<ReadProfile> profile =
        ReadProfileOf(blame.Watch(input.source), {.tells_collectives = true});
    if (!profile.ok()) {
      const absl::Status failed = traces::Named(profile.status(), input.name);
      // One that was deleted since they were listed is passed over as well.
      const bool is_its_own = !blame.is_senders() || absl::IsNotFound(failed);
      if (asked == Asked::kThese || !is_its_own) return failed;
      err << "stepwell: " << Printable(std::string(failed.message())) << "; left out\n";
    } else if (!profile->report.steps.empty()) {
      gathering.Add(input, *std::move(profile), err);
    } else if (asked == Asked::kThese) {
      TellNoSteps(input.name, err);
    }
  }
  return gathering.Finish();
}

}  // namespace

int ReportRanks(const CommandOptions& options, Streams streams) {
  if (!options.Has("trial")) {
    const auto whole = Gather(FileInputs(options), Asked::kThese, streams.err);
    if (!whole.ok()) {
      streams.err << "stepwell: " << Printable(std::string(whole.status().message())) << "\n";
      return absl::IsNotFound(whole.status()) ? kExitNoInput : kExitFailed;
    }
    return whole->rows.empty() ? kExitFailed : Print(*whole, options, streams);
  }
  const auto trial = ParseTrialRef(options.Text("trial"), options.project());
  if (!trial.ok()) return options.UsageError(trial.status(), streams);
  MasterClient master(options.master());
  const auto inputs = StoredInputs(options, *trial, master);
  if (absl::IsInvalidArgument(inputs.status())) {
    return options.UsageError(inputs.status(), streams);
  }
  if (!inputs.ok()) {
    return ReportTrialFailure(inputs.status(), *trial, master, options.server(), streams);
  }
  const bool is_all = options.arguments().empty();
  const auto whole = Gather(*inputs, is_all ? Asked::kAll : Asked::kThese, streams.err);
  if (!whole.ok()) {
    return ReportTrialFailure(whole.status(), *trial, master, options.server(), streams);
  }
  if (whole->rows.empty()) {
    if (is_all) {
      streams.err << "stepwell: the trial has no trace of PyTorch's profiler; of a recorded run "
                     "'stepwell report TRIAL' tells\n";
    }
    return kExitFailed;
  }
  return Print(*whole, options, streams);
}

}  // namespace stepwell::cli
