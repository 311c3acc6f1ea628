// SeriesFlood: a client gone wrong that names new series as fast as it is let: eight streams, on each of
// which one writer after the other defines the 10,000 series that a writer may have, all of one trial. A
// trial has room for 200,000 of them: most are refused.
#pragma once

#include <memory>
#include <string>

#include "bench/beside/neighbours.h"

namespace stepwell::bench {

class SeriesFlood : public Neighbour {
 public:
  // The trial has all the series that it may have: all others are refused.
  virtual bool is_full() const = 0;
};

// Each writer's definitions come in messages of so many.
// End tells whether series were made and, once there were more than fit, refused with RESOURCE_EXHAUSTED.
std::unique_ptr<SeriesFlood> StartSeriesFlood(const std::string& address, const std::string& trial,
                                              int message_definitions);

}  // namespace stepwell::bench
