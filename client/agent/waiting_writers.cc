#include "client/agent/waiting_writers.h"

namespace stepwell::agent {
namespace {

std::size_t Is(const AsideWriter& writer, AsideWriter::State state) {
  return writer.state == state ? 1 : 0;
}

}  // namespace

void WaitingWriters::Add(const std::string& name, AsideWriter writer) {
  if (!writers_.try_emplace(name, writer).second) return;
  new_count_ += Is(writer, AsideWriter::State::kNew);
  unsent_count_ += Is(writer, AsideWriter::State::kUnsent);
  refused_count_ += Is(writer, AsideWriter::State::kRefused);
  delivered_count_ += Is(writer, AsideWriter::State::kDelivered);
  unacked_bytes_ += writer.unacked_bytes;
  acked_sum_ += writer.acked_sequence;
  switch (writer.state) {
    case AsideWriter::State::kNew:
      return new_.push_back(name);
    case AsideWriter::State::kUnsent:
    case AsideWriter::State::kRefused:
    case AsideWriter::State::kSpooled:
      return drained_.push_back(name);
    case AsideWriter::State::kDelivered:
      return;
  }
}

void WaitingWriters::Drop(const std::string& name) {
  const auto found = writers_.find(name);
  if (found == writers_.end()) return;
  const AsideWriter& writer = found->second;
  new_count_ -= Is(writer, AsideWriter::State::kNew);
  unsent_count_ -= Is(writer, AsideWriter::State::kUnsent);
  refused_count_ -= Is(writer, AsideWriter::State::kRefused);
  delivered_count_ -= Is(writer, AsideWriter::State::kDelivered);
  unacked_bytes_ -= writer.unacked_bytes;
  acked_sum_ -= writer.acked_sequence;
  writers_.erase(found);
}

std::optional<WaitingWriters::Taken> WaitingWriters::Take() {
  if (std::optional<Taken> taken = TakeFrom(new_)) return taken;
  return TakeFrom(drained_);
}

std::optional<WaitingWriters::Taken> WaitingWriters::TakeFrom(std::deque<std::string>& queue) {
  while (!queue.empty()) {
    std::string name = std::move(queue.front());
    queue.pop_front();
    const auto found = writers_.find(name);
    if (found == writers_.end()) continue;
    const AsideWriter::State state = found->second.state;
    Drop(name);
    return Taken{std::move(name), state};
  }
  return std::nullopt;
}

bool WaitingWriters::all_done() const { return new_count_ + unsent_count_ + refused_count_ == 0; }

bool WaitingWriters::all_settled() const { return new_count_ + unsent_count_ == 0; }

}  // namespace stepwell::agent
