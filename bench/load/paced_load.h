// PacedLoad: 64 writers on 64 streams that send 32,000 samples/s together, ten chunks a second each, and
// time their acks. Confined to one thread.
//
//   PacedLoad load(master.grpc_address(), "load");
//   STEPWELL_RETURN_IF_ERROR(load.Open());
//   STEPWELL_ASSIGN_OR_RETURN(const double ms, load.AckP99Ms(absl::Seconds(10)));
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/load/load_stream.h"
#include "bench/load/made_up_chunks.h"

namespace stepwell::bench {

class PacedLoad {
 public:
  PacedLoad(const std::string& address, const std::string& trial);

  absl::Status Open();
  // Sends for so long, waits for the last ack; the 99th percentile of Write to ack, in milliseconds.
  absl::StatusOr<double> AckP99Ms(absl::Duration duration);
  // LoadStream::AckTimes of each writer, by rank: of all chunks so far. All ticks of a chunk have its sequence for their batch.
  std::vector<std::vector<double>> AckTimes() const;

 private:
  struct Writer {
    MadeUpChunks chunks;
    LoadStream stream;
  };
  std::vector<std::unique_ptr<Writer>> writers_;
};

}  // namespace stepwell::bench
