#include "client/agent/served_root.h"

#include <cstdlib>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "client/agent/kept_tokens.h"

namespace stepwell::agent {

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
