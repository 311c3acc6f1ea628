// LinkNote: which masters cannot be reached now, and why, in a file of the format directory, for those
// who look at a spool (`stepwell agent status`) while its agent serves it. Advice: where it cannot be
// written there is none. Confined to the agent's loop.
//
//   LinkNote note(format_directory, "127.0.0.1:7817");
//   note.Follow(links.troubles());     // at each visit
#pragma once

#include <map>
#include <optional>
#include <string>

namespace stepwell::agent {

inline constexpr char kLinkNoteFile[] = "links.json";

struct LinkFacts {
  // Of writers that name no master.
  std::string server;
  // By address: why it cannot be reached.
  std::map<std::string, std::string> troubles;

  friend bool operator==(const LinkFacts& a, const LinkFacts& b) = default;
};

// What the note of a format directory says; nothing where there is none that can be read.
LinkFacts ReadLinkNote(int format_directory);

class LinkNote {
 public:
  // `format_directory` outlives this. `server` is the agent's own.
  LinkNote(int format_directory, std::string server)
      : format_directory_(format_directory), server_(std::move(server)) {}

  // Writes what is new; what an agent before this one wrote is overwritten at the first call.
  void Follow(std::map<std::string, std::string> troubles);

 private:
  const int format_directory_;
  const std::string server_;
  std::optional<LinkFacts> noted_;
};

}  // namespace stepwell::agent
