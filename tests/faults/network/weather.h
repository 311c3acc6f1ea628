// Weather: what a network does to connections, said in words as failpoints are:
//
//   "delay=300ms jitter=100ms"   each piece comes so much later, in order; jitter adds up to so much
//   "stall=1%:2s"                so many of the pieces come that much later
//   "rate=8000"                  bytes a second, each way
//   "slice=1"                    no write, and so no packet, is longer
//   "reset=65536"                a connection is reset after so many bytes of its client, in the middle
//                                of whatever they are
//   "hold=up", "down", "both"    a black hole: nothing comes through that way, no end either. What was
//                                sent comes when it is lifted, as TCP sends it again
//   "flap=2s:500ms"              all is well for 2 s, then for 500 ms all is reset and refused, each
//                                half to one and a half times as long
//   ""                           fair
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace stepwell::faults {

struct Weather {
  using Duration = std::chrono::microseconds;

  Duration delay{0};
  Duration jitter{0};
  double stall_chance = 0;
  Duration stall{0};
  // 0 = no bound.
  std::int64_t bytes_per_second = 0;
  std::size_t slice_bytes = 0;
  std::size_t reset_bytes = 0;
  bool holds_up = false;    // from clients
  bool holds_down = false;  // to clients
  Duration flap_up{0};
  Duration flap_down{0};

  // None = no such words.
  static std::optional<Weather> Parse(const std::string& words);
};

}  // namespace stepwell::faults
