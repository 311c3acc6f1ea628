// RefusalNote: what the master said when it refused a writer, in that writer's directory, for those
// who look at a spool without an agent or a master (`stepwell agent status`). Advice: where it cannot
// be written there is none. Confined to the agent's loop.
//
//   RefusalNote note(directory);
//   note.Follow(link->status());    // at each visit
#pragma once

#include <string>

#include "client/agent/outbound_writer.h"

namespace stepwell::agent {

// "REASON: message" of the note in a writer's directory; empty where there is none.
std::string ReadRefusalNote(int directory);

class RefusalNote {
 public:
  // `directory` outlives this.
  explicit RefusalNote(int directory);

  // Writes what is new; removes it once the writer is open.
  void Follow(const OutboundWriter::Status& status);

 private:
  const int directory_;
  std::string noted_;
};

}  // namespace stepwell::agent
