#include "client/cli/agent_status_view.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/table.h"
#include "client/cli/units.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace stepwell::cli {
namespace {

constexpr char kIndent[] = "  ";
// An agent that reaches its master is never so far behind.
constexpr std::int64_t kLateUs = 30'000'000;
// Where acks come nothing waits for so long: it is sent, and whether somebody takes it is not known yet.
constexpr std::int64_t kUnansweredUs = 5'000'000;
// Writers may be refused each for a reason of its own.
constexpr std::size_t kAdviceMax = 10;

std::string BytesText(std::int64_t bytes) { return ValueText(static_cast<double>(bytes), "bytes"); }

std::string AgeText(std::int64_t since_us, std::int64_t now_us) {
  if (since_us == 0) return "-";
  return SecondsText(static_cast<double>(std::max<std::int64_t>(now_us - since_us, 0)) * 1e-6);
}

std::string TrialOf(const SpooledWriter& writer) {
  if (!writer.trouble.empty()) return "?";
  const std::string trial = Printable(writer.trial);
  return writer.project == "default" || writer.project.empty()
             ? trial
             : absl::StrCat(Printable(writer.project), "/", trial);
}

std::string StateOf(const SpooledWriter& writer) {
  if (!writer.trouble.empty()) return "unreadable";
  std::vector<std::string> more;
  if (writer.pid != 0) more.push_back(absl::StrCat("pid ", writer.pid));
  if (writer.worker_count > 0) {
    more.push_back(Plural(static_cast<std::uint64_t>(writer.worker_count), "worker"));
  }
  if (!writer.refusal.empty()) more.emplace_back("refused");
  return more.empty() ? writer.state
                      : absl::StrCat(writer.state, " (", absl::StrJoin(more, ", "), ")");
}

std::string RingsText(const SpooledWriter& writer) {
  if (writer.rings_missing) return "gone";
  if (writer.ring_events_max == 0) return "-";
  const double share =
      static_cast<double>(writer.ring_events) / static_cast<double>(writer.ring_events_max);
  return fmt::format("{:.0f} %", share * 100);
}

// By trial and rank, a trial's machine last, then what cannot be read; without those of which nothing waits any more.
std::vector<const SpooledWriter*> ShownWriters(const SpoolStatus& spool) {
  std::vector<const SpooledWriter*> writers;
  for (const SpooledWriter& writer : spool.writers) {
    if (writer.state != "stored") writers.push_back(&writer);
  }
  std::stable_sort(writers.begin(), writers.end(),
                   [](const SpooledWriter* a, const SpooledWriter* b) {
                     const auto key = [](const SpooledWriter& writer) {
                       return std::make_tuple(!writer.trouble.empty(), writer.project, writer.trial,
                                              writer.is_sampler, writer.rank);
                     };
                     return key(*a) < key(*b);
                   });
  return writers;
}

Table WritersTable(const std::vector<const SpooledWriter*>& writers, std::int64_t now_us) {
  Table table({{"trial"},
               {"rank", Align::kRight},
               {"state"},
               {"server"},
               {"frames", Align::kRight},
               {"bytes", Align::kRight},
               {"oldest", Align::kRight},
               {"rings", Align::kRight},
               {"dropped", Align::kRight},
               {"writer"}});
  for (const SpooledWriter* shown : writers) {
    const SpooledWriter& writer = *shown;
    const std::string server = writer.server.empty() ? "the agent's" : Printable(writer.server);
    table.Add({TrialOf(writer), writer.is_sampler ? "machine" : absl::StrCat(writer.rank),
               StateOf(writer), writer.trouble.empty() ? server : "",
               CountText(static_cast<std::int64_t>(writer.unacked_frames)),
               BytesText(writer.unacked_bytes), AgeText(writer.unacked_since_us, now_us),
               RingsText(writer), CountText(static_cast<std::int64_t>(writer.dropped_events)),
               writer.writer.substr(0, 8)});
  }
  return table;
}

// Sums over the writers of a spool that advice depends on.
struct Sums {
  explicit Sums(const SpoolStatus& spool) {
    for (const SpooledWriter& writer : spool.writers) {
      live += writer.is_live() ? 1 : 0;
      troubled += writer.trouble.empty() ? 0 : 1;
      events_in_memory += writer.rings_in_memory ? writer.ring_events : 0;
      dropped += writer.dropped_events;
      rings_missing += writer.rings_missing ? 1 : 0;
      // What the master will not have nothing sends as it is.
      if (!writer.refusal.empty()) {
        ++refused;
        continue;
      }
      frames += writer.unacked_frames;
      samples += writer.unacked_samples;
      events += writer.ring_events;
      // Its agent keeps it for the upload.
      const bool is_offline = writer.is_kept();
      offline += is_offline && writer.waits() && !writer.is_server_unusable ? 1 : 0;
      waiting += writer.waits() ? 1 : 0;
      const bool is_over = writer.state == "ended" || writer.state == "died";
      untold += is_over && !writer.waits() ? 1 : 0;
      if (writer.waits() && writer.is_server_unusable) ++unusable[writer.server];
      if (!writer.waits() || is_offline) continue;
      OfMaster& of_master = masters[writer.server];
      ++of_master.waiting;
      if (of_master.unreachable.empty()) of_master.unreachable = writer.unreachable;
      const std::int64_t since_us = writer.unacked_since_us;
      if (since_us == 0) continue;
      if (of_master.since_us == 0 || since_us < of_master.since_us) of_master.since_us = since_us;
    }
  }

  // What waits for one master.
  struct OfMaster {
    std::uint64_t waiting = 0;
    std::int64_t since_us = 0;
    std::string unreachable;
  };

  std::uint64_t live = 0;
  std::uint64_t troubled = 0;
  std::uint64_t refused = 0;
  std::uint64_t rings_missing = 0;
  std::uint64_t events_in_memory = 0;
  std::uint64_t dropped = 0;
  // Without those that were refused:
  std::uint64_t waiting = 0;
  std::uint64_t untold = 0;  // all of it is stored, but not that it ended
  std::uint64_t offline = 0;
  std::uint64_t frames = 0;
  std::uint64_t samples = 0;
  std::uint64_t events = 0;
  std::map<std::string, OfMaster> masters;
  // What is no address, with how many named it.
  std::map<std::string, std::uint64_t> unusable;
};

std::string UploadText(const SpoolStatus& spool) {
  return absl::StrCat("'stepwell upload ", Printable(spool.root), "'");
}

// Empty = it is being sent to that one.
std::string TroubleText(const std::string& server, const Sums::OfMaster& of_master,
                        std::int64_t now_us) {
  const std::string master = server.empty() ? "The agent's master" : Printable(server);
  constexpr char kStays[] = " What waits stays on the disk until it does.";
  if (!of_master.unreachable.empty()) {
    // It may be away, or answer and want another token.
    return absl::StrCat(master, " takes nothing (", Printable(of_master.unreachable),
                        "): ", Plural(of_master.waiting, "writer"),
                        of_master.waiting == 1 ? " waits" : " wait", " for it.", kStays);
  }
  if (of_master.since_us == 0 || now_us - of_master.since_us <= kLateUs) return {};
  return absl::StrCat(master, " acked nothing for ", AgeText(of_master.since_us, now_us),
                      ": is the master up, and reached from here?", kStays);
}

// Of one that this agent was not started with.
bool WantsToken(const SpooledWriter& writer) {
  return absl::StartsWith(writer.refusal, "GRANT_MISSING:") ||
         absl::StartsWith(writer.refusal, "TOKEN_REFUSED:") ||
         absl::StrContains(writer.unreachable, "token");
}

std::string TokenText(const SpoolStatus& spool) {
  const std::string stop =
      spool.agent_pid == 0 ? "the agent has ended"
                           : absl::StrCat("the agent was stopped ('kill ", spool.agent_pid, "')");
  return absl::StrCat(
      "A training brings its own token by 'stepwell run --trial-token'; what waits here is sent "
      "with the "
      "STEPWELL_TOKEN of ",
      UploadText(spool), ", once ", stop, ".");
}

void AdviseServed(const SpoolStatus& spool, const Sums& sums, std::int64_t now_us,
                  std::vector<std::string>& advice) {
  if (sums.offline > 0) {
    advice.push_back(absl::StrCat(Plural(sums.offline, "writer"),
                                  " of a trial that records offline: once it has ended, ",
                                  UploadText(spool), " sends it."));
  }
  for (const auto& [server, count] : sums.unusable) {
    if (advice.size() >= kAdviceMax) return;
    advice.push_back(absl::StrCat(Plural(count, "writer"), count == 1 ? " names" : " name",
                                  " the master '", Printable(server),
                                  "', which is no HOST:PORT: once the trial has ended, ",
                                  UploadText(spool), " sends it to another."));
  }
  bool is_any_sent = false;
  bool is_any_stuck = false;
  std::int64_t sent_since_us = now_us;
  for (const auto& [server, of_master] : sums.masters) {
    const std::string trouble = TroubleText(server, of_master, now_us);
    is_any_sent = is_any_sent || trouble.empty();
    is_any_stuck = is_any_stuck || !trouble.empty();
    if (trouble.empty() && of_master.since_us != 0) {
      sent_since_us = std::min(sent_since_us, of_master.since_us);
    }
    if (!trouble.empty() && advice.size() < kAdviceMax) advice.push_back(trouble);
  }
  if (is_any_sent) {
    const bool is_unanswered = now_us - sent_since_us > kUnansweredUs;
    advice.push_back(absl::StrCat(
        is_any_stuck ? "The rest" : "It", " is being sent",
        is_unanswered ? absl::StrCat("; the oldest has waited for ", AgeText(sent_since_us, now_us))
                      : "",
        "."));
  }
}

void AdviseUnserved(const SpoolStatus& spool, const Sums& sums, std::vector<std::string>& advice) {
  if (sums.live > 0) {
    advice.push_back(absl::StrCat(sums.live,
                                  sums.live == 1 ? " process records" : " processes record",
                                  " and no agent ships it: 'stepwell agent --spool-dir ",
                                  Printable(spool.root), "' does; full rings drop."));
  } else if (sums.frames + sums.events == 0 && sums.untold > 0) {
    advice.push_back(absl::StrCat(UploadText(spool), " tells the master that ",
                                  Plural(sums.untold, "writer"), " ended."));
  } else if (sums.waiting > 0) {
    advice.push_back(absl::StrCat(
        UploadText(spool), " sends what waits: ", Plural(sums.samples, "sample"), " in ",
        Plural(sums.frames, "frame"), ", ", Plural(sums.events, "event"), " in rings."));
  }
}

std::string UnarchiveText(const SpooledWriter& writer) {
  std::string text = absl::StrCat("'stepwell admin unarchive ", Printable(writer.trial));
  if (!writer.project.empty() && writer.project != "default") {
    absl::StrAppend(&text, " --project ", Printable(writer.project));
  }
  return text + "'";
}

// What ends the refusal that `writer` met, and what becomes of what waits then.
std::string RemedyText(const SpoolStatus& spool, const SpooledWriter& writer) {
  constexpr char kStays[] = "What waits stays on the disk";
  if (absl::StartsWith(writer.refusal, "TRIAL_DELETED:")) {
    return absl::StrCat("No master takes it any more: once nothing records there, its directories ",
                        "below ", Printable(spool.root), "/f1 can be removed.");
  }
  // Of tokens is told for all writers at once.
  if (WantsToken(writer)) return absl::StrCat(kStays, ".");
  const std::string after = absl::StartsWith(writer.refusal, "TRIAL_ARCHIVED:")
                                ? absl::StrCat("after ", UnarchiveText(writer), ",")
                                : "once that is put right,";
  const std::string sender = spool.is_served && !writer.is_kept()
                                 ? "the agent sends it within a minute"
                                 : absl::StrCat(UploadText(spool), " sends it");
  return absl::StrCat(kStays, "; ", after, " ", sender, ".");
}

// Each that was said, once.
void AdviseRefused(const SpoolStatus& spool, std::vector<std::string>& advice) {
  struct Refused {
    const SpooledWriter* first = nullptr;
    std::uint64_t count = 0;
  };
  std::map<std::string, Refused> all;
  for (const SpooledWriter& writer : spool.writers) {
    if (writer.refusal.empty()) continue;
    Refused& refused = all[writer.refusal];
    if (refused.count++ == 0) refused.first = &writer;
  }
  for (const auto& [refusal, refused] : all) {
    if (advice.size() >= kAdviceMax) return;
    advice.push_back(absl::StrCat("The master refused ", Plural(refused.count, "writer"), ": ",
                                  Printable(refusal), ". ", RemedyText(spool, *refused.first)));
  }
}

std::string FirstTrouble(const SpoolStatus& spool) {
  for (const SpooledWriter& writer : spool.writers) {
    if (!writer.trouble.empty()) return Printable(writer.trouble);
  }
  return {};
}

}  // namespace

std::vector<std::string> AdviceFor(const SpoolStatus& spool, std::int64_t now_us) {
  const Sums sums(spool);
  std::vector<std::string> advice;
  if (spool.is_served) {
    AdviseServed(spool, sums, now_us, advice);
  } else {
    AdviseUnserved(spool, sums, advice);
  }
  if (sums.refused > 0) AdviseRefused(spool, advice);
  if (std::any_of(spool.writers.begin(), spool.writers.end(), WantsToken)) {
    advice.push_back(TokenText(spool));
  }
  if (sums.events_in_memory > 0) {
    advice.push_back(absl::StrCat(Plural(sums.events_in_memory, "event"),
                                  " in shared memory: a restart of the machine loses them."));
  }
  if (sums.rings_missing > 0) {
    advice.push_back(
        absl::StrCat("The rings of ", Plural(sums.rings_missing, "writer"),
                     " are not here (they were in shared memory): what was in no frame "
                     "yet is lost."));
  }
  if (sums.dropped > 0) {
    advice.push_back(
        absl::StrCat(Plural(sums.dropped, "event"),
                     " found no room and were dropped; the trial's completeness tells."));
  }
  if (sums.troubled > 0) {
    advice.push_back(absl::StrCat(sums.troubled, sums.troubled == 1 ? " directory" : " directories",
                                  " cannot be read: ", FirstTrouble(spool), "."));
  }
  if (advice.empty()) {
    advice.emplace_back(spool.writers.empty() ? "Nothing is recorded here."
                                              : "All of it is stored.");
  }
  return advice;
}

std::string AgentStatusText(const std::vector<SpoolStatus>& spools,
                            const std::vector<std::string>& places, std::int64_t now_us,
                            const Paint& paint) {
  if (spools.empty()) {
    return absl::StrCat("Nothing waits here: there is no spool directory of yours at ",
                        absl::StrJoin(places, ", "), ". --spool-dir DIR looks elsewhere.\n");
  }
  std::string text;
  for (const SpoolStatus& spool : spools) {
    std::int64_t spool_bytes = 0;
    for (const SpooledWriter& writer : spool.writers) spool_bytes += writer.spool_bytes;
    const std::string agent = !spool.is_served ? paint.Yellow("no agent")
                              : spool.agent_pid != 0
                                  ? paint.Green(absl::StrCat("agent ", spool.agent_pid))
                                  : paint.Green("an agent of another container");
    absl::StrAppend(&text, text.empty() ? "" : "\n", paint.Bold(Printable(spool.root)), "  ", agent,
                    "  ",
                    paint.Dim(absl::StrCat(Plural(spool.writers.size(), "writer"), ", ",
                                           BytesText(spool_bytes), " of spool")),
                    "\n");
    const std::vector<const SpooledWriter*> shown = ShownWriters(spool);
    if (!shown.empty()) absl::StrAppend(&text, WritersTable(shown, now_us).Text(paint, kIndent));
    const std::size_t stored = spool.writers.size() - shown.size();
    if (!shown.empty() && stored > 0) {
      absl::StrAppend(&text, kIndent, CountText(static_cast<std::int64_t>(stored)),
                      stored == 1 ? " more writer is stored.\n" : " more writers are stored.\n");
    }
    for (const std::string& sentence : AdviceFor(spool, now_us)) {
      absl::StrAppend(&text, kIndent, sentence, "\n");
    }
  }
  return text;
}

std::string AgentStatusJson(const std::vector<SpoolStatus>& spools, std::int64_t now_us) {
  using nlohmann::ordered_json;
  ordered_json all = ordered_json::array();
  for (const SpoolStatus& spool : spools) {
    ordered_json writers = ordered_json::array();
    for (const SpooledWriter& writer : spool.writers) {
      writers.push_back({{"writer", writer.writer},
                         {"trouble", writer.trouble},
                         {"project", writer.project},
                         {"trial", writer.trial},
                         {"is_sampler", writer.is_sampler},
                         {"rank", writer.rank},
                         {"state", writer.state},
                         {"pid", writer.pid},
                         {"workers", writer.worker_count},
                         {"server", writer.server},
                         {"refusal", writer.refusal},
                         {"unreachable", writer.unreachable},
                         {"unacked_frames", writer.unacked_frames},
                         {"unacked_samples", writer.unacked_samples},
                         {"unacked_bytes", writer.unacked_bytes},
                         {"unacked_since_us", writer.unacked_since_us},
                         {"spool_bytes", writer.spool_bytes},
                         {"ring_events", writer.ring_events},
                         {"ring_events_max", writer.ring_events_max},
                         {"dropped_events", writer.dropped_events},
                         {"rings_in_memory", writer.rings_in_memory},
                         {"rings_missing", writer.rings_missing}});
    }
    all.push_back({{"root", spool.root},
                   {"is_served", spool.is_served},
                   {"agent_pid", spool.agent_pid},
                   {"writers", std::move(writers)},
                   {"advice", AdviceFor(spool, now_us)}});
  }
  const ordered_json status = {{"spools", std::move(all)}};
  return status.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace stepwell::cli
