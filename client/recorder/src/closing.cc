#include "client/recorder/src/closing.h"

#include <unistd.h>

#include <new>
#include <utility>

namespace stepwell::recorder {

Closing::Closing() : pid_(getpid()) {}

bool Closing::Begin(std::shared_ptr<ProcessWriter> writer, LateCalls late) {
  writer_ = std::move(writer);
  if (writer_ == nullptr) return false;
  header_ = writer_->spool().shared_header();
  return writer_->Finish(late);
}

Closing::~Closing() {
  if (writer_ == nullptr) return;
  if (getpid() == pid_) {
    writer_->Release();
  } else {
    // Its files, lock and threads are the parent's. The memory stays: a destructor would write there.
    (void)new (std::nothrow) std::shared_ptr<ProcessWriter>(std::move(writer_));
  }
}

ProcessWriter::Ack Closing::Await(std::int64_t timeout_ms) {
  if (getpid() != pid_) return ProcessWriter::Ack::kNever;
  return ProcessWriter::AwaitAckOf([this] { return Ask(); }, timeout_ms);
}

ProcessWriter::Ack Closing::Ask() {
  const std::lock_guard lock(asking_);
  return writer_ == nullptr ? ProcessWriter::AckIn(*header_) : writer_->AskAck();
}

void Closing::Ease() {
  if (getpid() != pid_) return;
  const std::lock_guard lock(asking_);
  // What nobody will ever say needs the writer: it has no agent.
  if (writer_ == nullptr || writer_->spool().is_memory_only()) return;
  writer_->Release();
  writer_.reset();
}

}  // namespace stepwell::recorder
