#include "server/grpc_channelz.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "server/peer_address.h"

namespace stepwell {
namespace {

// Takes what channelz allocated: its messages' JSON, null where there is none such.
nlohmann::json Parsed(char* text) {
  const std::unique_ptr<char, void (*)(void*)> owned(text, gpr_free);
  if (text == nullptr) return nullptr;
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// 64-bit numbers are words there, and left out where they are 0.
std::int64_t NumberAt(const nlohmann::json& object, const char* name) {
  std::int64_t number = 0;
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string() ||
      !absl::SimpleAtoi(found->get_ref<const std::string&>(), &number)) {
    return 0;
  }
  return number;
}

const nlohmann::json& At(const nlohmann::json& object, const char* name) {
  static const nlohmann::json none = nlohmann::json::object();
  const auto found = object.find(name);
  return found == object.end() || !found->is_structured() ? none : *found;
}

constexpr int kPage = 100;

// Both lists come in pages.
bool IsLast(const nlohmann::json& page) { return page.value("end", false); }

}  // namespace

bool ChannelzCalls::Begin() {
  std::int64_t from = 0;
  while (true) {
    const nlohmann::json page = Parsed(grpc_channelz_get_servers(from));
    if (!page.is_object()) break;
    for (const nlohmann::json& each : At(page, "server")) {
      server_ = std::max(server_, NumberAt(At(each, "ref"), "serverId"));
    }
    if (IsLast(page) || from == server_ + 1) break;
    from = server_ + 1;
  }
  return server_ != 0;
}

std::vector<CallCounter> ChannelzCalls::Since(std::int64_t id) {
  std::vector<CallCounter> counters;
  while (server_ != 0) {
    const nlohmann::json page = Parsed(grpc_channelz_get_server_sockets(server_, id, kPage));
    if (!page.is_object()) break;
    const std::size_t before = counters.size();
    for (const nlohmann::json& each : At(page, "socketRef")) {
      // "chttp2 ipv4:10.0.0.7:51034"
      const std::string name = each.value("name", "");
      const std::int64_t found = NumberAt(each, "socketId");
      counters.push_back({EndOfPeer(name.substr(name.find(' ') + 1)), found});
      id = std::max(id, found + 1);
    }
    if (IsLast(page) || counters.size() == before) break;
  }
  return counters;
}

std::optional<std::int64_t> ChannelzCalls::Begun(std::int64_t id) {
  const nlohmann::json answer = Parsed(grpc_channelz_get_socket(id));
  if (!answer.is_object()) return std::nullopt;
  return NumberAt(At(At(answer, "socket"), "data"), "streamsStarted");
}

}  // namespace stepwell
