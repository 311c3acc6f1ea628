// HttpConnection: one client of the HTTP port: reads its requests one after the other, has each answered
// and writes what comes. It keeps itself alive by the operation that is pending, and by the exchange that
// a handler holds. Confined to the thread "http".
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "server/http/http_guard.h"
#include "server/http/http_held_bytes.h"
#include "server/http/http_places.h"
#include "server/http/http_routes.h"
#include "server/http/http_server.h"
#include "server/http/http_tls.h"

namespace stepwell {

// What the connections of a port share.
struct HttpPort {
  HttpPort(boost::asio::io_context& context_in, const HttpServer::Options& options_in,
           const HttpRoutes& routes_in, HttpGuard guard_in)
      : context(context_in),
        options(options_in),
        routes(routes_in),
        guard(std::move(guard_in)),
        tls(options_in.tls),
        places(options_in.connections_max, options_in.connections_per_address_max),
        held(options_in.held_bytes_max),
        held_bodies(options_in.held_body_bytes_max) {}

  // Whether the caller is the thread "http", or that has ended.
  bool IsConfined() const {
    return context.stopped() || context.get_executor().running_in_this_thread();
  }

  boost::asio::io_context& context;
  const HttpServer::Options& options;
  const HttpRoutes& routes;
  const HttpGuard guard;
  HttpTls tls;  // where options.tls is set
  HttpPlaces places;
  HttpHeldBytes held;  // of answers
  HttpHeldBytes held_bodies;
};

// `address`, as AddressKey, has taken its place, which the connection leaves. `port` outlives it.
void StartHttpConnection(HttpPort& port, boost::asio::ip::tcp::socket socket,
                         const std::string& address, bool is_loopback);

}  // namespace stepwell
