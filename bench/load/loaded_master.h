// LoadedMaster: a master on a private PostgreSQL that takes loads on one stream for each agent
// and is asked about them. Confined to one thread.
//
//   LoadedMaster ours("day", load);
//   ours.Load(load);    // until the last ack
//   ours.Settle();      // until all that is ripe is folded and merged
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/load/load_stream.h"
#include "bench/load/master_child.h"
#include "bench/load/tick_load.h"
#include "stepwell/v1/admin.grpc.pb.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "storage/pg_connection.h"

namespace stepwell::bench {

class LoadedMaster {
 public:
  // Starts a master and opens the writers of the load; all loads have the same ones.
  LoadedMaster(const std::string& trial, const TickLoad& like, std::vector<std::string> flags = {});

  // Two threads, each with the streams of half of the agents, writer by writer as samples come.
  void Load(const TickLoad& load);
  void Settle();
  // Ends the writers, so that all they sent is ripe.
  void Close();
  // A master that has read nothing yet, on the same data, with other addresses: it is asked over connections
  // that are new, too. What was written lies on the disk before. REQUIRES: Close() was called.
  void Restart();
  // The master says that it holds so many samples, and that nothing is missing.
  void CheckHeld(std::int64_t sample_count);

  struct Sizes {
    // Tables, their indexes and TOAST. Samples: all but what follows.
    double samples = 0;
    double rollups = 0;
    // The journal and what is not yet merged: used again and again.
    double rings = 0;
  };
  // What came since the start.
  Sizes StoredBytes();

  // A connection to its PostgreSQL.
  PgConnection& sql() { return *sql_; }
  const std::string& grpc_address() const { return master_.grpc_address(); }
  const std::string& http_address() const { return master_.http_address(); }
  pid_t pid() const { return master_.pid(); }
  double CpuSeconds() const { return master_.CpuSeconds(); }
  v1::QueryBucketsResponse Ask(v1::QueryBucketsRequest request);
  // How many values came.
  int AskLatest();

 private:
  void Connect();
  Sizes ReadSizes();

  const std::string trial_;
  MasterChild master_;
  std::unique_ptr<PgConnection> sql_;
  std::unique_ptr<v1::QueryService::Stub> queries_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::vector<std::unique_ptr<LoadStream>> streams_;  // by agent
  Sizes empty_;
};

// Until what runs behind the answers is done: under 3 % of a core for three seconds.
void AwaitIdle(const std::function<double()>& cpu_seconds);

}  // namespace stepwell::bench
