#include "client/agent/link_note.h"

#include <fcntl.h>

#include <utility>

#include "client/agent/file_descriptor.h"
#include "nlohmann/json.hpp"

namespace stepwell::agent {
namespace {

constexpr std::size_t kNoteBytesMax = 64 << 10;

}  // namespace

LinkFacts ReadLinkNote(int format_directory) {
  LinkFacts facts;
  const auto text = ReadSmallFileAt(format_directory, kLinkNoteFile, kNoteBytesMax);
  if (!text.ok()) return facts;
  const nlohmann::json note = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!note.is_object()) return facts;
  const auto server = note.find("server");
  if (server != note.end() && server->is_string()) facts.server = server->get<std::string>();
  const auto troubles = note.find("troubles");
  if (troubles == note.end() || !troubles->is_object()) return facts;
  for (const auto& [address, why] : troubles->items()) {
    if (why.is_string()) facts.troubles[address] = why.get<std::string>();
  }
  return facts;
}

void LinkNote::Follow(std::map<std::string, std::string> troubles) {
  LinkFacts wanted = {server_, std::move(troubles)};
  if (noted_ == wanted) return;
  const nlohmann::json note = {{"server", wanted.server}, {"troubles", wanted.troubles}};
  const std::string text =
      note.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  // Not atomically: who finds half of it has no advice this time.
  const auto file = OpenAt(format_directory_, kLinkNoteFile, O_WRONLY | O_CREAT | O_TRUNC);
  if (file.ok() && WriteAt(file->get(), 0, text).ok()) noted_ = std::move(wanted);
}

}  // namespace stepwell::agent
