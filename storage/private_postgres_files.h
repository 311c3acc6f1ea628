// What the files of a private PostgreSQL tell about a server: its pid file, its shared memory, the
// last words in its log. Nothing here ever removes the pid file. Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>

#include "storage/private_postgres_cluster.h"

namespace stepwell {

// Lines of postmaster.pid; zeros when there is none.
struct PidFile {
  pid_t pid = 0;
  // System V id; -1 when unknown.
  int shared_memory_id = -1;
  // Somebody asked it to stop, in whichever way.
  bool is_stopping = false;
};
PidFile ReadPidFile(const std::string& data_directory);

// True when `pid` lives and is a postgres of that data directory, not another program that got an
// old number.
bool IsServerOf(pid_t pid, const std::string& data_directory);

// True while processes are attached to the shared memory of a dead server.
bool SharedMemoryInUse(const PidFile& file);

std::int64_t LogBytes(const PostgresCluster& cluster);
// Keeps the log below 16 MiB, and one older of the same size.
void TrimLog(const PostgresCluster& cluster);
// The last PANIC, or else the first FATAL of the server itself, after `offset`: why it ended. Empty
// when it died without a word. What was told to single clients does not count.
std::string LastWords(const PostgresCluster& cluster, std::int64_t offset);

}  // namespace stepwell
