#include "client/cli/trials_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/proto_json.h"
#include "client/cli/table.h"
#include "client/cli/units.h"
#include "client/cli/words.h"

namespace stepwell::cli {
namespace {

template <typename Message>
std::string JsonArray(const std::vector<Message>& messages) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const Message& message : messages) array.push_back(ToJson(message));
  return array.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string SpanText(const v1::Trial& trial) {
  const std::int64_t span_us = trial.last_sample_time_us() - trial.first_sample_time_us();
  if (trial.first_sample_time_us() == 0 || span_us <= 0) return "-";
  return SecondsText(static_cast<double>(span_us) * 1e-6);
}

// Of gaps whose number nobody knows it can but be told that there are some.
std::string MissingText(const v1::Trial& trial) {
  if (trial.samples_missing() > 0) return CountText(trial.samples_missing());
  return trial.has_missing_samples() ? "unknown" : "-";
}

}  // namespace

std::string TrialsText(const std::vector<v1::Trial>& trials, const Paint& paint) {
  if (trials.empty()) return "No trials.\n";
  Table table({{"TRIAL"},
               {"ID", Align::kRight},
               {"STATE"},
               {"CREATED"},
               {"SPAN", Align::kRight},
               {"ATTEMPTS", Align::kRight},
               {"WRITERS", Align::kRight},
               {"SERIES", Align::kRight},
               {"SAMPLES", Align::kRight},
               {"MISSING", Align::kRight}});
  for (const v1::Trial& trial : trials) {
    table.Add({TrialName(trial), absl::StrCat(trial.trial_id()), StateWord(trial.state()),
               TimeText(trial.created_time_us()), SpanText(trial), CountText(trial.attempt_count()),
               CountText(trial.writer_count()), CountText(trial.series_count()),
               CountText(trial.sample_count()), MissingText(trial)});
  }
  return table.Text(paint);
}

std::string TrialsJson(const std::vector<v1::Trial>& trials) { return JsonArray(trials); }

std::string SeriesText(const std::vector<v1::Series>& series, const Paint& paint) {
  if (series.empty()) return "No series.\n";
  Table table({{"NO", Align::kRight}, {"GROUP"}, {"NAME"}, {"KIND"}, {"UNIT"}, {"LABELS"}});
  for (const v1::Series& one : series) {
    table.Add({absl::StrCat(one.series_no()), Printable(one.key().metric_group()),
               Printable(one.key().name()), KindWord(one.kind()), Printable(one.unit()),
               LabelsText(one.key().labels())});
  }
  return table.Text(paint);
}

std::string SeriesJson(const std::vector<v1::Series>& series) { return JsonArray(series); }

std::string FlushText(const v1::FlushResponse& flush) {
  if (flush.sample_count() == 0) return "Nothing to fold: SQL sees every acked sample.\n";
  return absl::StrCat(
      "Folded ", CountText(flush.sample_count()), " samples of ", CountText(flush.trial_count()),
      flush.trial_count() == 1 ? " trial" : " trials", ": SQL sees every acked sample.\n");
}

std::string ProfilingText(const std::string& trial, const v1::SetProfilingResponse& response) {
  std::string what = ProfilingWords(response.profiling());
  if (!IsRestrained(response.profiling())) what += " as it chose itself";
  const std::int64_t told = response.writers_told();
  return absl::StrCat(Printable(trial), ": ", what, ". ",
                      told == 0   ? "No writer of it is open; those that open later will be told."
                      : told == 1 ? "1 open writer was told."
                                  : absl::StrCat(CountText(told), " open writers were told."),
                      "\n");
}

namespace {

// Who is connected; empty = nobody.
std::string AgentsText(const v1::GetStatusResponse& status, const Paint& paint) {
  if (status.agents().empty()) return {};
  Table table({{"HOST"},
               {"VERSION"},
               {"WRITERS", Align::kRight},
               {"CONNECTED SINCE"},
               {"SILENT FOR", Align::kRight}});
  for (const v1::ConnectedAgent& agent : status.agents()) {
    const std::int64_t silent_us = status.answered_time_us() - agent.seen_time_us();
    table.Add({agent.agent_id().empty() ? "-" : Printable(agent.agent_id()),
               agent.agent_version().empty() ? "-" : Printable(agent.agent_version()),
               CountText(agent.writers_open()), TimeText(agent.since_time_us()),
               SecondsText(static_cast<double>(std::max<std::int64_t>(silent_us, 0)) * 1e-6)});
  }
  std::string text = absl::StrCat("\n", table.Text(paint));
  if (status.agents_left_out() > 0) {
    absl::StrAppend(&text, "and ", CountText(status.agents_left_out()),
                    " more; listed are those that were silent the longest\n");
  }
  return text;
}

}  // namespace

std::string StatusText(const v1::GetStatusResponse& status, const Paint& paint) {
  Table table({{"MASTER"}, {Printable(status.master_id())}});
  const auto add = [&](const char* name, const std::string& value) { table.Add({name, value}); };
  add("version", status.version());
  add("role", absl::StrCat(status.role(), " (epoch ", status.epoch(), ")"));
  add("database", status.database_up() ? "up" : "down: " + Printable(status.database_error()));
  // None is free, where a disk has something to say.
  const std::string free = status.disk_free_bytes() == 0 && status.disk_error().empty()
                               ? "not known: the database is elsewhere"
                               : ValueText(static_cast<double>(status.disk_free_bytes()), "bytes");
  add("disk free",
      status.disk_error().empty() ? free : free + ": " + Printable(status.disk_error()));
  add("streams open", CountText(status.streams_open()));
  add("writers open", CountText(status.writers_open()));
  add("unfolded", ValueText(static_cast<double>(status.unfolded_bytes()), "bytes"));
  const auto count = [&](const char* name, std::uint64_t value) {
    add(name, CountText(static_cast<std::int64_t>(value)));
  };
  count("chunks committed", status.chunks_committed());
  count("samples committed", status.samples_committed());
  count("chunks repeated", status.chunks_repeated());
  count("chunks rejected", status.chunks_rejected());
  count("commit groups", status.commit_groups());
  count("commits in doubt", status.commits_in_doubt());
  count("samples replayed", status.samples_replayed());
  count("chunks lost", status.sequences_lost());
  return table.Text(paint) + AgentsText(status, paint);
}

}  // namespace stepwell::cli
