// Closing is a writer that is closed, and whose ack may still be waited for: what a caller of
// stepwell_close_begin holds. Eased it holds no more than the page that its agent writes to, so that a
// program may keep thousands.
//
// Any thread may wait and ease. In a forked child it is the parent's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include "client/recorder/src/process_writer.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::recorder {

class Closing {
 public:
  Closing();
  ~Closing();
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

  // False = there is none. REQUIRES: nobody else closes it.
  bool Begin(std::shared_ptr<ProcessWriter> writer, LateCalls late);
  ProcessWriter::Ack Await(std::int64_t timeout_ms);
  // From here on it starts no agent, and waits for one that never came.
  void Ease();

 private:
  ProcessWriter::Ack Ask();

  std::mutex asking_;
  std::shared_ptr<ProcessWriter> writer_;  // guarded by asking_; null once it is eased
  std::shared_ptr<const spool::WriterHeader> header_;
  const pid_t pid_;
};

}  // namespace stepwell::recorder
