#include "client/agent/sender.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"

namespace stepwell::agent {
namespace {

// One that waits for a place looks so often whether it has come.
constexpr absl::Duration kPlaceInterval = absl::Seconds(1);

const std::string& WriterOf(const pb::StreamChunksResponse& message) {
  static const std::string none;
  switch (message.message_case()) {
    case pb::StreamChunksResponse::kOpened:
      return message.opened().writer();
    case pb::StreamChunksResponse::kAck:
      return message.ack().writer();
    case pb::StreamChunksResponse::kRefused:
      return message.refused().writer();
    case pb::StreamChunksResponse::kDirective:
      return message.directive().writer();
    case pb::StreamChunksResponse::MESSAGE_NOT_SET:
      return none;
  }
  return none;
}

}  // namespace

void Sender::Add(std::shared_ptr<OutboundWriter> writer) {
  absl::MutexLock lock(&mu_);
  if (connected_) writer->OnConnected();
  std::size_t place = places_.size();
  if (free_places_.empty()) {
    places_.emplace_back();
  } else {
    place = free_places_.back();
    free_places_.pop_back();
  }
  place_by_id_.try_emplace(writer->spool().writer(), place);
  writer->ready_mark().Attach(ready_, place);
  places_[place] = std::move(writer);
  ready_->Take(place);
}

void Sender::Remove(const OutboundWriter& writer) {
  absl::MutexLock lock(&mu_);
  const auto found = std::find_if(places_.begin(), places_.end(),
                                  [&](const WriterPtr& known) { return known.get() == &writer; });
  if (found == places_.end()) return;
  const auto place = static_cast<std::size_t>(found - places_.begin());
  writer.ready_mark().Detach();
  ready_->Leave(place);
  const WriterPtr removed = std::exchange(*found, nullptr);
  free_places_.push_back(place);
  const Uuid id = removed->spool().writer();
  if (place_by_id_.at(id) == place) {
    place_by_id_.erase(id);
    // Of spools that name no writer several may have been given the same.
    const auto other = std::find_if(places_.begin(), places_.end(), [&](const WriterPtr& each) {
      return each != nullptr && each->spool().writer() == id;
    });
    if (other != places_.end()) {
      place_by_id_[id] = static_cast<std::size_t>(other - places_.begin());
    }
  }
  // A writer that waits may open in its stead.
  if (places_.size() > kOpenMax) ready_->MarkAll();
}

void Sender::OnConnected() {
  absl::MutexLock lock(&mu_);
  connected_ = true;
  for (const WriterPtr& writer : places_) {
    if (writer != nullptr) writer->OnConnected();
  }
}

void Sender::OnDisconnected() {
  absl::MutexLock lock(&mu_);
  connected_ = false;
  clock_offset_.Forget();
  for (const WriterPtr& writer : places_) {
    if (writer != nullptr) writer->OnDisconnected();
  }
}

std::vector<Sender::WriterPtr> Sender::writers() const {
  absl::MutexLock lock(&mu_);
  std::vector<WriterPtr> all;
  all.reserve(places_.size() - free_places_.size());
  std::copy_if(places_.begin(), places_.end(), std::back_inserter(all),
               [](const WriterPtr& writer) { return writer != nullptr; });
  return all;
}

Sender::WriterPtr Sender::writer_at(std::size_t place) const {
  absl::MutexLock lock(&mu_);
  return place < places_.size() ? places_[place] : nullptr;
}

Sender::WriterPtr Sender::FindWriter(const Uuid& id) const {
  absl::MutexLock lock(&mu_);
  const auto found = place_by_id_.find(id);
  return found == place_by_id_.end() ? nullptr : places_[found->second];
}

bool Sender::is_crowded() const {
  absl::MutexLock lock(&mu_);
  return places_.size() - free_places_.size() > kOpenMax;
}

bool Sender::MaySpeak(const OutboundWriter& writer, std::optional<bool>& is_full) const {
  if (!is_crowded() || writer.has_place()) return true;
  if (!is_full) {
    const std::vector<WriterPtr> all = writers();
    const auto placed = std::count_if(all.begin(), all.end(),
                                      [](const WriterPtr& each) { return each->has_place(); });
    is_full = static_cast<std::size_t>(placed) >= kOpenMax;
  }
  return !*is_full;
}

template <typename Ask>
std::optional<std::size_t> Sender::AskDue(std::size_t begin, absl::Duration now,
                                          const Ask& ask) const {
  std::optional<bool> is_full;
  const std::size_t count = ready_->place_count();
  if (begin >= count) begin = 0;
  for (std::size_t asked = 0; asked < count;) {
    const std::optional<ReadySet::Due> due = ready_->FindDue(begin, count - asked, now);
    if (!due) return std::nullopt;
    const WriterPtr writer = writer_at(due->place);
    if (writer != nullptr) {
      if (!MaySpeak(*writer, is_full)) {
        // Whoever gives a place up marks all. No reader of this should have to prove that.
        ready_->Rest(*due, now + kPlaceInterval);
      } else if (ask(*writer)) {
        return due->place;
      } else {
        ready_->Rest(*due, writer->DueAt(now));
      }
    }
    asked += (due->place + count - begin) % count + 1;
    begin = (due->place + 1) % count;
  }
  return std::nullopt;
}

bool Sender::HasNext(absl::Duration now) const {
  return AskDue(0, now, [now](const OutboundWriter& writer) { return writer.HasNext(now); })
      .has_value();
}

std::optional<pb::StreamChunksRequest> Sender::Next(absl::Duration now) {
  std::optional<pb::StreamChunksRequest> message;
  const auto spoke = AskDue(turn_ + 1, now, [now, &message](OutboundWriter& writer) {
    message = writer.Next(now);
    return message.has_value();
  });
  if (!spoke) return std::nullopt;
  turn_ = *spoke;
  absl::MutexLock lock(&mu_);
  spoke_last_ = *spoke;
  return message;
}

Sender::Then Sender::OnMessage(const pb::StreamChunksResponse& message, absl::Duration now) {
  if (const std::optional<Uuid> id = Uuid::FromBytes(WriterOf(message))) {
    // None: of a writer that is done with.
    const WriterPtr writer = FindWriter(*id);
    return writer == nullptr ? Then::kGoOn : OnMessageTo(*writer, message, now);
  }
  if (message.has_refused()) {
    log::Warning("stream_refused", {{"reason", message.refused().reason()},
                                    {"message", message.refused().message()}});
  }
  return Then::kGoOn;
}

Sender::Then Sender::OnMessageTo(OutboundWriter& writer, const pb::StreamChunksResponse& message,
                                 absl::Duration now) {
  const std::uint64_t acked_before = writer.acked_sequence();
  if (!writer.OnMessage(message, now)) return Then::kGiveUp;
  TellTooOld(message);
  // Its place may be another's now.
  const bool is_over = message.has_refused() || (message.has_ack() && message.ack().closed());
  if (is_over && is_crowded()) ready_->MarkAll();
  if (!message.has_opened()) {
    return is_over || writer.HasNext(now) ? Then::kMaySend : Then::kGoOn;
  }
  const OutboundWriter::MasterSeen seen{message.opened().incarnation(),
                                        message.opened().committed_sequence() < acked_before};
  for (const WriterPtr& each : writers()) {
    if (each.get() != &writer) each->OnMasterSeen(seen);
  }
  return Then::kMaySend;
}

void Sender::TellTooOld(const pb::StreamChunksResponse& message) {
  const bool is_too_old = message.has_refused() && message.refused().reason() == kClientTooOld;
  if (!is_too_old && !message.has_opened()) return;
  {
    absl::MutexLock lock(&mu_);
    if (std::exchange(too_old_told_, is_too_old) || !is_too_old) return;
  }
  log::Warning("agent_too_old", {{"message", message.refused().message()}});
}

void Sender::OnMasterSeen(const OutboundWriter::MasterSeen& seen) {
  for (const WriterPtr& writer : writers()) writer->OnMasterSeen(seen);
}

std::string Sender::TakenToken() const {
  for (const WriterPtr& writer : writers()) {
    if (std::string token = writer->taken_token(); !token.empty()) return token;
  }
  return "";
}

bool Sender::awaits_answer() const {
  WriterPtr spoke_last;
  {
    absl::MutexLock lock(&mu_);
    if (spoke_last_ < places_.size()) spoke_last = places_[spoke_last_];
  }
  if (spoke_last != nullptr && spoke_last->awaits_answer()) return true;
  const std::vector<WriterPtr> all = writers();
  return std::any_of(all.begin(), all.end(),
                     [](const WriterPtr& writer) { return writer->awaits_answer(); });
}

bool Sender::empty() const {
  absl::MutexLock lock(&mu_);
  return places_.size() == free_places_.size();
}

}  // namespace stepwell::agent
