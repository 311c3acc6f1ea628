#include "tests/faults/network/chaos_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/faults/network/weather.h"
#include "tests/support/loopback.h"

namespace stepwell::faults {
namespace {

using testing::Loopback;
using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

// What a way holds back before it reads no more: a long, slow line.
constexpr std::size_t kHeldBytesMax = std::size_t{4} << 20;
constexpr std::size_t kReadBytes = 16384;
// Writes of one way between two looks at the others.
constexpr int kWritesPerTurn = 64;

[[noreturn]] void Give(const char* what) {
  std::perror(what);
  std::abort();
}

int TcpSocket() { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

void CloseQuietly(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

// RST instead of FIN.
void CloseByReset(int& fd) {
  const linger at_once = {1, 0};
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  CloseQuietly(fd);
}

struct Piece {
  std::string bytes;
  std::size_t written = 0;
  TimePoint due;
};

// What goes from one socket to the other.
struct Way {
  bool is_up = false;
  std::deque<Piece> held = {};
  std::size_t held_bytes = 0;
  std::size_t carried_bytes = 0;
  bool ended = false;      // its writer has said so
  bool end_told = false;   // so has the other socket heard it
  bool broken = false;     // its writer was reset
  TimePoint free_at = {};  // of the bytes per second
};

struct Link {
  int client = -1;
  int server = -1;
  bool connecting = true;
  bool is_lost = false;  // one side is gone, and the other not told
  Way up = {.is_up = true};
  Way down = {};
};

}  // namespace

class ChaosProxy::Loop {
 public:
  Loop(const std::string& server, std::uint64_t seed, const std::string& listen_host)
      : server_port_(std::atoi(server.substr(server.rfind(':') + 1).c_str())), random_(seed) {
    Listen(listen_host);
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0) Give("eventfd");
    thread_ = std::thread([this] { Run(); });
  }

  ~Loop() {
    stopping_ = true;
    Wake();
    thread_.join();
    for (Link& link : links_) Reset(link);
    CloseQuietly(listener_);
    CloseQuietly(wake_);
  }

  const std::string& address() const { return address_; }

  void Set(const std::string& words) {
    const std::optional<Weather> weather = Weather::Parse(words);
    if (!weather) {
      std::fprintf(stderr, "no such weather: %s\n", words.c_str());
      std::abort();
    }
    const std::lock_guard<std::mutex> lock(mu_);
    weather_ = *weather;
    is_down_ = false;
    flap_at_ = Clock::now() + Roughly(weather_.flap_up);
    Wake();
  }

  void Lose(bool server) {
    const std::lock_guard<std::mutex> lock(mu_);
    for (Link& link : links_) {
      if (link.connecting || link.is_lost) continue;
      link.is_lost = true;
      link.up.held.clear();
      link.down.held.clear();
      CloseByReset(server ? link.server : link.client);
    }
    Wake();
  }

  void ResetAll() {
    const std::lock_guard<std::mutex> lock(mu_);
    for (Link& link : links_) Break(link);
    Wake();
  }

  Counts counts() const {
    const std::lock_guard<std::mutex> lock(mu_);
    Counts counts = counts_;
    counts.open = static_cast<std::uint64_t>(
        std::count_if(links_.begin(), links_.end(), [](const Link& link) { return IsOpen(link); }));
    return counts;
  }

 private:
  static bool IsOpen(const Link& link) { return link.client >= 0 || link.server >= 0; }

  void Listen(const std::string& host) {
    listener_ = TcpSocket();
    sockaddr_in address = Loopback(0);
    if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) Give("chaos proxy: host");
    socklen_t size = sizeof(address);
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        listen(listener_, 128) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      Give("chaos proxy: listen");
    }
    address_ = host + ":" + std::to_string(ntohs(address.sin_port));
  }

  void Wake() const {
    const std::uint64_t one = 1;
    (void)!write(wake_, &one, sizeof(one));
  }

  void Run() {
    std::vector<pollfd> polled;
    while (!stopping_) {
      TimePoint next = Clock::now() + std::chrono::seconds(1);
      {
        const std::lock_guard<std::mutex> lock(mu_);
        Flap(next);
        Accept();
        for (Link& link : links_) Serve(link, next);
        links_.remove_if([](const Link& link) { return !IsOpen(link); });
        Collect(polled);
      }
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(next - Clock::now());
      const std::int64_t nanoseconds = std::max<std::int64_t>(left.count(), 0);
      const timespec patience = {nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
      ppoll(polled.data(), polled.size(), &patience, nullptr);
      std::uint64_t wakes = 0;
      (void)!read(wake_, &wakes, sizeof(wakes));
    }
  }

  // What may move something. Ways that wait for their time are `next`'s.
  void Collect(std::vector<pollfd>& polled) {
    polled = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    const TimePoint now = Clock::now();
    for (const Link& link : links_) {
      const auto add = [&](int fd, const Way& from, const Way& to) {
        if (fd < 0) return;
        int events = 0;
        if (!from.ended && !from.broken && from.held_bytes < kHeldBytesMax) events |= POLLIN;
        if (link.connecting ? fd == link.server : WantsToWrite(to, now)) events |= POLLOUT;
        // An error would be told again and again to one that is not asked for anything.
        if (events != 0) polled.push_back({fd, static_cast<short>(events), 0});
      };
      if (!link.connecting) add(link.client, link.up, link.down);
      add(link.server, link.down, link.up);
    }
  }

  bool Holds(const Way& way) const { return way.is_up ? weather_.holds_up : weather_.holds_down; }
  bool WantsToWrite(const Way& way, TimePoint now) const {
    return !way.held.empty() && !Holds(way) && way.held.front().due <= now && way.free_at <= now;
  }

  Clock::duration Roughly(Weather::Duration duration) {
    return std::chrono::duration_cast<Clock::duration>(
        duration * std::uniform_real_distribution<double>(0.5, 1.5)(random_));
  }

  void Flap(TimePoint& next) {
    if (weather_.flap_down.count() == 0) return;
    if (Clock::now() >= flap_at_) {
      is_down_ = !is_down_;
      flap_at_ = Clock::now() + Roughly(is_down_ ? weather_.flap_down : weather_.flap_up);
      if (is_down_) {
        for (Link& link : links_) Break(link);
      }
    }
    next = std::min(next, flap_at_);
  }

  void Accept() {
    for (int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); fd >= 0;
         fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) {
      ++counts_.accepted;
      Link& link = links_.emplace_back();
      link.client = fd;
      link.server = TcpSocket();
      for (const int side : {link.client, link.server}) {
        const int on = 1;
        setsockopt(side, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      }
      const sockaddr_in address = Loopback(server_port_);
      if (is_down_) {
        Break(link);
      } else if (connect(link.server, reinterpret_cast<const sockaddr*>(&address),
                         sizeof(address)) != 0 &&
                 errno != EINPROGRESS) {
        End(link);
      }
    }
  }

  void Reset(Link& link) {
    CloseByReset(link.client);
    CloseByReset(link.server);
  }
  // The weather's doing.
  void Break(Link& link) {
    if (IsOpen(link)) ++counts_.reset;
    Reset(link);
  }
  // Both have said their last, and will be heard.
  void Leave(Link& link) {
    ++counts_.ended;
    CloseQuietly(link.client);
    CloseQuietly(link.server);
  }
  // Theirs.
  void End(Link& link) {
    if (IsOpen(link)) ++counts_.ended;
    Reset(link);
  }

  void Serve(Link& link, TimePoint& next) {
    if (link.connecting && !IsConnected(link)) return;
    if (!IsOpen(link)) return;
    if (link.is_lost) return ServeLost(link);
    Read(link.client, link.up);
    Read(link.server, link.down);
    Write(link, link.up, link.server, next);
    if (IsOpen(link)) Write(link, link.down, link.client, next);
    if (!IsOpen(link)) return;
    // An end goes through only where bytes do.
    TellEnd(link, link.up, link.server);
    TellEnd(link, link.down, link.client);
    if (link.up.end_told && link.down.end_told) Leave(link);
  }

  // False where it is still connecting, or could not.
  bool IsConnected(Link& link) {
    pollfd asked = {link.server, POLLOUT, 0};
    if (poll(&asked, 1, 0) == 0) return false;
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(link.server, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      End(link);
      return false;
    }
    link.connecting = false;
    return true;
  }

  // Whoever is left speaks to nobody, and hears nothing of it.
  void ServeLost(Link& link) {
    int& side = link.client >= 0 ? link.client : link.server;
    Way nowhere;
    Read(side, nowhere);
    if (nowhere.ended || nowhere.broken) End(link);
  }

  void Read(int fd, Way& way) {
    char buffer[kReadBytes];
    while (!way.ended && !way.broken && way.held_bytes < kHeldBytesMax) {
      const ssize_t count = recv(fd, buffer, sizeof(buffer), 0);
      if (count < 0) {
        way.broken = errno != EAGAIN && errno != EINTR;
        return;
      }
      if (count == 0) {
        way.ended = true;
        return;
      }
      way.held_bytes += static_cast<std::size_t>(count);
      way.held.push_back({{buffer, static_cast<std::size_t>(count)}, 0, DueOf(way)});
    }
  }

  // In order: none before the one that it follows.
  TimePoint DueOf(const Way& way) {
    std::uniform_real_distribution<double> chance(0, 1);
    TimePoint due = Clock::now() + weather_.delay;
    due += std::chrono::duration_cast<Clock::duration>(weather_.jitter * chance(random_));
    if (chance(random_) < weather_.stall_chance) due += weather_.stall;
    return way.held.empty() ? due : std::max(due, way.held.back().due);
  }

  // The bytes of a 50th of a second, at least one.
  std::size_t BytesAtOnce(const Piece& piece, const Way& way) const {
    std::size_t bytes = piece.bytes.size() - piece.written;
    if (weather_.slice_bytes > 0) bytes = std::min(bytes, weather_.slice_bytes);
    if (weather_.bytes_per_second > 0) {
      bytes = std::min(bytes, static_cast<std::size_t>(weather_.bytes_per_second / 50 + 1));
    }
    if (weather_.reset_bytes > 0 && way.is_up) {
      bytes = std::min(
          bytes, weather_.reset_bytes - std::min(way.carried_bytes, weather_.reset_bytes - 1));
    }
    return bytes;
  }

  void Write(Link& link, Way& way, int to, TimePoint& next) {
    for (int i = 0; i < kWritesPerTurn && !way.held.empty() && !Holds(way); ++i) {
      const TimePoint now = Clock::now();
      Piece& piece = way.held.front();
      const TimePoint due = std::max(piece.due, way.free_at);
      if (due > now) {
        next = std::min(next, due);
        return;
      }
      const ssize_t count = send(to, piece.bytes.data() + piece.written, BytesAtOnce(piece, way),
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0) {
        if (errno != EAGAIN && errno != EINTR) End(link);
        return;
      }
      Carried(way, static_cast<std::size_t>(count), now);
      if (weather_.reset_bytes > 0 && way.is_up && way.carried_bytes >= weather_.reset_bytes) {
        return Break(link);
      }
    }
  }

  void Carried(Way& way, std::size_t count, TimePoint now) {
    Piece& piece = way.held.front();
    piece.written += count;
    way.held_bytes -= count;
    way.carried_bytes += count;
    (way.is_up ? counts_.bytes_up : counts_.bytes_down) += count;
    if (way.is_up) ++counts_.writes_up;
    if (weather_.bytes_per_second > 0) {
      way.free_at = now + std::chrono::microseconds(static_cast<std::int64_t>(count) * 1'000'000 /
                                                    weather_.bytes_per_second);
    }
    if (piece.written == piece.bytes.size()) way.held.pop_front();
  }

  void TellEnd(Link& link, Way& way, int to) {
    if (!IsOpen(link) || way.end_told || Holds(way) || !way.held.empty()) return;
    if (way.broken) return End(link);
    if (!way.ended) return;
    shutdown(to, SHUT_WR);
    way.end_told = true;
  }

  const int server_port_;
  std::string address_;
  int listener_ = -1;
  int wake_ = -1;
  std::atomic<bool> stopping_ = false;

  mutable std::mutex mu_;
  Weather weather_;
  std::mt19937_64 random_;
  bool is_down_ = false;
  TimePoint flap_at_ = {};
  std::list<Link> links_;
  Counts counts_;
  std::thread thread_;  // last: it uses the others
};

ChaosProxy::ChaosProxy(const std::string& server, std::uint64_t seed,
                       const std::string& listen_host)
    : loop_(std::make_unique<Loop>(server, seed, listen_host)) {}
ChaosProxy::~ChaosProxy() = default;
const std::string& ChaosProxy::address() const { return loop_->address(); }
void ChaosProxy::Set(const std::string& weather) { loop_->Set(weather); }
void ChaosProxy::LoseServer() { loop_->Lose(/*server=*/true); }
void ChaosProxy::LoseClient() { loop_->Lose(/*server=*/false); }
void ChaosProxy::ResetAll() { loop_->ResetAll(); }
ChaosProxy::Counts ChaosProxy::counts() const { return loop_->counts(); }

}  // namespace stepwell::faults
