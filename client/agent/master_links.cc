#include "client/agent/master_links.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "client/agent/server_address.h"

namespace stepwell::agent {

MasterLinks::MasterLinks(Options options, const Clock& clock, std::function<void()> on_answer)
    : options_(std::move(options)), clock_(clock), on_answer_(std::move(on_answer)) {}

std::string MasterLinks::Resolve(const std::string& server) const {
  if (server.empty() || options_.server_for_all) return options_.server;
  return IsServerAddress(server) ? server : kOffline;
}

Sender& MasterLinks::SenderTo(const std::string& server) {
  std::unique_ptr<Link>& link = links_[server];
  if (link == nullptr) link = std::make_unique<Link>();
  return link->sender;
}

void MasterLinks::Tend() {
  std::erase_if(links_, [](const auto& entry) { return entry.second->sender.empty(); });
  if (!stopped_) StartStreams();
  for (const auto& [server, link] : links_) {
    if (link->stream == nullptr) continue;
    if (link->sender.HasNext(clock_.Monotonic())) link->stream->Wake();
    link->stream->Tend();
  }
}

void MasterLinks::StartStreams() {
  int count = stream_count();
  int waiting_count = 0;
  for (const auto& [server, link] : links_) {
    if (link->stream != nullptr || server == kOffline) continue;
    if (count >= options_.stream_count_max) {
      ++waiting_count;
      continue;
    }
    ++count;
    link->stream = std::make_unique<Stream>(
        Stream::Options{.server = server,
                        .tls = options_.tls,
                        .token = [this, name = server] { return options_.token(name); }},
        link->sender, clock_, on_answer_);
    link->stream->Start();
  }
  if (waiting_count == 0 || clock_.Monotonic() - waiting_logged_ < absl::Minutes(1)) return;
  waiting_logged_ = clock_.Monotonic();
  log::Warning("masters_too_many",
               {{"connected", count},
                {"waiting", waiting_count},
                {"why", "their writers stay in the spool until another master is done with"}});
}

void MasterLinks::Stop() {
  stopped_ = true;
  for (const auto& [server, link] : links_) {
    if (link->stream != nullptr) link->stream->Stop();
  }
}

std::map<std::string, std::string> MasterLinks::troubles() const {
  std::map<std::string, std::string> troubles;
  for (const auto& [server, link] : links_) {
    if (link->stream == nullptr) continue;
    if (std::string trouble = link->stream->trouble(); !trouble.empty()) {
      troubles[server] = std::move(trouble);
    }
  }
  return troubles;
}

int MasterLinks::stream_count() const {
  return static_cast<int>(std::count_if(links_.begin(), links_.end(), [](const auto& entry) {
    return entry.second->stream != nullptr;
  }));
}

}  // namespace stepwell::agent
