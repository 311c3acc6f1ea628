#include "client/agent/sender.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace stepwell::agent {
namespace {

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
  auto more = std::make_shared<Writers>(*writers_);
  more->push_back(std::move(writer));
  writers_ = std::move(more);
}

void Sender::Remove(const OutboundWriter& writer) {
  absl::MutexLock lock(&mu_);
  auto fewer = std::make_shared<Writers>(*writers_);
  std::erase_if(*fewer, [&](const auto& known) { return known.get() == &writer; });
  writers_ = std::move(fewer);
}

void Sender::OnConnected() {
  absl::MutexLock lock(&mu_);
  connected_ = true;
  for (const auto& writer : *writers_) writer->OnConnected();
}

void Sender::OnDisconnected() {
  absl::MutexLock lock(&mu_);
  connected_ = false;
  clock_offset_.Forget();
  for (const auto& writer : *writers_) writer->OnDisconnected();
}

std::shared_ptr<const Sender::Writers> Sender::writers() const {
  absl::MutexLock lock(&mu_);
  return writers_;
}

bool Sender::MaySpeak(const Writers& all, const OutboundWriter& writer,
                      std::optional<bool>& is_full) {
  if (all.size() <= kOpenMax || writer.has_place()) return true;
  if (!is_full) {
    const auto placed =
        std::count_if(all.begin(), all.end(), [](const auto& each) { return each->has_place(); });
    is_full = static_cast<std::size_t>(placed) >= kOpenMax;
  }
  return !*is_full;
}

bool Sender::HasNext(absl::Duration now) const {
  const auto all = writers();
  std::optional<bool> is_full;
  return std::any_of(all->begin(), all->end(), [&](const auto& writer) {
    return MaySpeak(*all, *writer, is_full) && writer->HasNext(now);
  });
}

std::optional<pb::StreamChunksRequest> Sender::Next(absl::Duration now) {
  const auto all = writers();
  std::optional<bool> is_full;
  for (std::size_t i = 0; i < all->size(); ++i) {
    OutboundWriter& writer = *(*all)[++turn_ % all->size()];
    if (!MaySpeak(*all, writer, is_full)) continue;
    if (auto message = writer.Next(now)) return message;
  }
  return std::nullopt;
}

Sender::Then Sender::OnMessage(const pb::StreamChunksResponse& message, absl::Duration now) {
  if (const std::optional<Uuid> id = Uuid::FromBytes(WriterOf(message))) {
    const auto all = writers();
    const auto found = std::find_if(all->begin(), all->end(), [&](const auto& writer) {
      return writer->spool().writer() == *id;
    });
    // Of a writer that is done with.
    return found == all->end() ? Then::kGoOn : OnMessageTo(**found, message, now);
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
  if (!message.has_opened()) {
    return is_over || writer.HasNext(now) ? Then::kMaySend : Then::kGoOn;
  }
  const OutboundWriter::MasterSeen seen{message.opened().incarnation(),
                                        message.opened().committed_sequence() < acked_before};
  const auto all = writers();
  for (const auto& each : *all) {
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
  const auto all = writers();
  for (const auto& writer : *all) writer->OnMasterSeen(seen);
}

std::string Sender::TakenToken() const {
  const auto all = writers();
  for (const auto& writer : *all) {
    if (std::string token = writer->taken_token(); !token.empty()) return token;
  }
  return "";
}

bool Sender::awaits_answer() const {
  const auto all = writers();
  return std::any_of(all->begin(), all->end(),
                     [](const auto& writer) { return writer->awaits_answer(); });
}

bool Sender::empty() const {
  absl::MutexLock lock(&mu_);
  return writers_->empty();
}

}  // namespace stepwell::agent
