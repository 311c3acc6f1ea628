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
  writers_.push_back(std::move(writer));
}

void Sender::Remove(const OutboundWriter& writer) {
  absl::MutexLock lock(&mu_);
  std::erase_if(writers_, [&](const auto& known) { return known.get() == &writer; });
}

void Sender::OnConnected() {
  absl::MutexLock lock(&mu_);
  connected_ = true;
  for (const auto& writer : writers_) writer->OnConnected();
}

void Sender::OnDisconnected() {
  absl::MutexLock lock(&mu_);
  connected_ = false;
  clock_offset_.Forget();
  for (const auto& writer : writers_) writer->OnDisconnected();
}

Sender::Writers Sender::writers() const {
  absl::MutexLock lock(&mu_);
  return writers_;
}

bool Sender::HasNext(absl::Time now) const {
  const Writers all = writers();
  return std::any_of(all.begin(), all.end(),
                     [now](const auto& writer) { return writer->HasNext(now); });
}

std::optional<pb::StreamChunksRequest> Sender::Next(absl::Time now) {
  const Writers writers = this->writers();
  for (std::size_t i = 0; i < writers.size(); ++i) {
    ++turn_;
    if (auto message = writers[turn_ % writers.size()]->Next(now)) return message;
  }
  return std::nullopt;
}

bool Sender::OnMessage(const pb::StreamChunksResponse& message, absl::Time now) {
  const std::optional<Uuid> id = Uuid::FromBytes(WriterOf(message));
  if (id) {
    const Writers all = writers();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& writer) {
      return writer->spool().writer() == *id;
    });
    if (found == all.end()) return true;  // of a writer that is done with
    const std::uint64_t acked_before = (*found)->status().acked_sequence;
    if (!(*found)->OnMessage(message, now)) return false;
    TellTooOld(message);
    if (message.has_opened()) {
      const OutboundWriter::MasterSeen seen{message.opened().incarnation(),
                                            message.opened().committed_sequence() < acked_before};
      for (const auto& writer : all) {
        if (writer != *found) writer->OnMasterSeen(seen);
      }
    }
    return true;
  }
  if (message.has_refused()) {
    log::Warning("stream_refused", {{"reason", message.refused().reason()},
                                    {"message", message.refused().message()}});
  }
  return true;
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
  for (const auto& writer : writers()) writer->OnMasterSeen(seen);
}

bool Sender::awaits_answer() const {
  const Writers all = writers();
  return std::any_of(all.begin(), all.end(),
                     [](const auto& writer) { return writer->status().awaits_answer; });
}

bool Sender::empty() const {
  absl::MutexLock lock(&mu_);
  return writers_.empty();
}

}  // namespace stepwell::agent
