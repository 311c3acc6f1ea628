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

bool Sender::HasNext(absl::Duration now) const {
  const auto all = writers();
  return std::any_of(all->begin(), all->end(),
                     [now](const auto& writer) { return writer->HasNext(now); });
}

std::optional<pb::StreamChunksRequest> Sender::Next(absl::Duration now) {
  const auto all = writers();
  for (std::size_t i = 0; i < all->size(); ++i) {
    ++turn_;
    if (auto message = (*all)[turn_ % all->size()]->Next(now)) return message;
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
  const std::uint64_t acked_before = writer.status().acked_sequence;
  if (!writer.OnMessage(message, now)) return Then::kGiveUp;
  TellTooOld(message);
  if (!message.has_opened()) return writer.HasNext(now) ? Then::kMaySend : Then::kGoOn;
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

bool Sender::awaits_answer() const {
  const auto all = writers();
  return std::any_of(all->begin(), all->end(),
                     [](const auto& writer) { return writer->status().awaits_answer; });
}

std::size_t Sender::writer_count() const {
  absl::MutexLock lock(&mu_);
  return writers_->size();
}

}  // namespace stepwell::agent
