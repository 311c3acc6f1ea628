#include "client/agent/served_root.h"

#include <cstdlib>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "client/agent/kept_tokens.h"
#include "client/agent/server_address.h"

namespace stepwell::agent {
namespace {

// Of one user that an agent of all users serves, where no master takes them: some of all ranks of a machine.
constexpr std::int64_t kUserCapturesBytesMax = 64 << 20;
constexpr absl::Duration kUserCapturesAgeMax = absl::Hours(1);
// A master of his own that takes nothing: his captures hold memory that others wait for.
constexpr absl::Duration kUserStallMax = absl::Minutes(1);

}  // namespace

// Of what the agent was started with. In another user's root it goes to the agent's own master alone, for his files
// may name a master of his.
TrialTokens::Options ServedRoot::TokenOptions(std::function<void()> on_change) const {
  TrialTokens::Options tokens;
  const std::shared_ptr<TlsReload>& tls = options_.tls;
  const char* own = std::getenv("STEPWELL_TOKEN");
  if (tls != nullptr && own != nullptr) tokens.own_token = own;
  tokens.has_certificate = tls != nullptr && !tls->Current()->cert_pem.empty();
  tokens.shows_own = [is_another_users = owner_.has_value(), server = options_.server](
                         const std::string& to) { return !is_another_users || to == server; };
  tokens.on_change = std::move(on_change);
  if (tls == nullptr || options_.upload) return tokens;
  const int directory = format_directory_.get();
  const ActAs acting(owner_);
  tokens.kept = ReadKeptTokens(directory, clock_.Now());
  tokens.keep = [directory, owner = owner_](const std::vector<KeptToken>& kept) {
    const ActAs writing(owner);
    const absl::Status written = WriteKeptTokens(directory, kept);
    // Its agent alone has them then.
    if (!written.ok()) log::Debug("tokens_not_kept", {{"why", std::string(written.message())}});
  };
  return tokens;
}

// Null: what is captured has no place.
std::unique_ptr<TraceSender> ServedRoot::MakeTraces() {
  if (owner_ && !captures_) return nullptr;
  TraceSender::Options options = {.machine = face_.agent_id,
                                  .sends_named_files = options_.sends_named_files};
  options.recordings.is_alone = options_.upload;
  if (owner_) {
    options.sends_named_files = false;
    options.kept_bytes_max = kUserCapturesBytesMax;
    options.kept_age_max = kUserCapturesAgeMax;
    options.stall_max = kUserStallMax;
    options.shows_writers_token = true;
  }
  return std::make_unique<TraceSender>(
      owner_ ? captures_->get() : format_directory_.get(), std::move(options),
      [this](const std::string& server) { return links_.Resolve(server); },
      MakeTraceCalls(
          options_.tls,
          {.shown = [this](const auto& server,
                           const auto& trial) { return tokens_.ShownFor(server, trial); },
           .on_refused = [this](const auto& server,
                                const auto& text) { tokens_.Reject(server, text); }}));
}

ServeContext ServedRoot::ContextFor(const std::string& server) {
  return {.sender = links_.SenderTo(server),
          .clock = clock_,
          .face = face_,
          .spool = spool_,
          .offline = server == kOffline,
          .processes = &processes_,
          .rings = rings_,
          .on_ticks = on_ticks_,
          .frame_interval = options_.frame_interval,
          .may_record_traces = !owner_,
          .may_capture = traces_ != nullptr,
          .note_recording = [this](const TraceJob& job) { return traces_->NoteRecording(job); },
          .leave_trace = [this](const TraceJob& job) { return traces_->Leave(job); },
          .keep_captured =
              [this](const auto& writer, auto trace) {
                // Its thread begins as this one is.
                const ActAs keeping(traces_owner_);
                traces_->Keep(writer, std::move(trace));
              },
          .note_epochs = [this](const auto& writer,
                                const auto& epochs) { traces_->NoteEpochs(writer, epochs); },
          .capture_room = capture_room_,
          .token_for = [this](const WriterIdentity& writer) { return TokenFor(writer); }};
}

TrialKey ServedRoot::KeyOf(const WriterIdentity& who) const {
  return {links_.Resolve(who.server), who.project, who.trial};
}

// What a root says of itself, as of the last visit.

bool ServedRoot::has_closing() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const auto& entry) { return entry.second.writer->closing(); });
}

bool ServedRoot::awaits_nobody() const {
  return finder_.has_looked_through() && arrived_.empty() && samplers_found_.empty() &&
         roomless_.empty() && finder_.waiting().count() == 0 &&
         hurry_.IsListening(clock_.Monotonic());
}

bool ServedRoot::is_quiet() const {
  const absl::Duration now = clock_.Monotonic();
  const std::vector<ServedWriter*> all = AllServed();
  return awaits_nobody() && are_samplers_calm() &&
         std::none_of(all.begin(), all.end(),
                      [now](const ServedWriter* served) { return served->IsSyncDue(now); }) &&
         std::all_of(ranks_.begin(), ranks_.end(), [&](const auto& entry) {
           return entry.second.writer->IsQuiet(SelectionFor(entry.second), now);
         });
}

bool ServedRoot::may_rest() const {
  const auto is_done = [](const ServedWriter& served) { return served.done() || served.spooled(); };
  return awaits_nobody() &&
         std::all_of(ranks_.begin(), ranks_.end(),
                     [&](const auto& rank) { return is_done(rank.second.writer->served()); }) &&
         std::all_of(ended_.all().begin(), ended_.all().end(),
                     [&](const ServedWriter* served) { return is_done(*served); }) &&
         std::all_of(samplers_.begin(), samplers_.end(),
                     [](const auto& sampler) { return sampler.second->may_rest(); });
}

bool ServedRoot::are_samplers_calm() const {
  return !has_live_changed_ && samplers_found_.empty() && roomless_.empty() &&
         std::all_of(samplers_.begin(), samplers_.end(), [](const auto& sampler) {
           const ServedWriter* const served = sampler.second->served();
           return sampler.second->is_calm() && (served == nullptr || !served->IsTendDue());
         });
}

AgentLife::Facts ServedRoot::facts() const {
  AgentLife::Facts facts;
  facts.any_seen = any_seen_;
  facts.all_gone = gone();
  facts.progress = found_count_;
  const WaitingWriters& waiting = finder_.waiting();
  facts.progress += waiting.acked_sum();
  const bool are_all_known = roomless_.empty() && finder_.has_looked_through();
  const bool are_traces_sent = traces_ == nullptr || traces_->is_done();
  if (traces_ != nullptr) facts.progress += traces_->progress();
  facts.all_done = are_all_known && are_traces_sent && waiting.all_done();
  facts.all_settled = are_all_known && are_traces_sent && waiting.all_settled();
  const auto add = [&](const ServedWriter& served, bool is_done, bool is_settled) {
    facts.all_done = facts.all_done && is_done;
    facts.all_settled = facts.all_settled && (is_done || is_settled);
    facts.progress += served.status().acked_sequence;
  };
  for (const auto& [name, rank] : ranks_) {
    const RankWriter& writer = *rank.writer;
    const bool is_done = writer.done() || writer.served().spooled();
    facts.any_live = facts.any_live || writer.live();
    add(writer.served(), is_done, is_done || writer.settled());
    facts.any_spooled = facts.any_spooled || writer.served().spooled();
  }
  for (const ServedWriter* served : ended_.all()) {
    add(*served, served->done() || served->spooled(), served->refused());
    facts.any_spooled = facts.any_spooled || served->spooled();
  }
  for (const auto& [key, sampler] : samplers_) {
    if (sampler->served() == nullptr) continue;
    facts.all_settled = false;
    // One that was asked for by hand runs as long as the agent.
    facts.all_done = facts.all_done && sampler->stays();
  }
  return facts;
}

void ServedRoot::AddTo(Summary& summary) const {
  summary.writer_count += static_cast<int>(finder_.waiting().count());
  summary.unacked_bytes += finder_.waiting().unacked_bytes();
  if (traces_ != nullptr) summary.traces = traces_->counts();
  for (const ServedWriter* served : AllServed()) {
    ++summary.writer_count;
    if (served->done()) {
      ++summary.acked_count;
      continue;
    }
    summary.unacked_bytes += served->unacked_bytes();
    if (!served->refused()) continue;
    ++summary.refused_count;
    summary.refusal = served->status().refusal;
  }
}

}  // namespace stepwell::agent
