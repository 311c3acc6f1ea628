// hold_postgres DIRECTORY: starts a private PostgreSQL there, prints the server's pid and waits to be
// killed, in the place of a master.
#include <unistd.h>

#include <cstdio>

#include "storage/private_postgres.h"

int main(int argument_count, char** arguments) {
  if (argument_count != 2) return 2;
  const auto postgres = stepwell::PrivatePostgres::Open(
      {.directory = arguments[1],
       .shared_buffers_bytes = 16 << 20,
       .durability = stepwell::PrivatePostgres::Options::Durability::kForTests});
  if (!postgres.ok()) {
    std::fprintf(stderr, "%s\n", postgres.status().ToString().c_str());
    return 1;
  }
  std::printf("held %d\n", (*postgres)->state().pid);
  std::fflush(stdout);
  pause();
  return 0;
}
