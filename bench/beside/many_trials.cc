#include "bench/beside/many_trials.h"

#include <array>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/load/load_stream.h"
#include "bench/load/made_up_chunks.h"

namespace stepwell::bench {
namespace {

// An Open waits for its commit: some of them at once.
constexpr int kThreads = 8;
constexpr std::array kGroups = {"timing", "gpu", "cpu", "memory", "disk", "network"};
constexpr ChunkShape kShape = {.series_count = 4 * static_cast<int>(kGroups.size())};

absl::Status FillTrial(const std::string& grpc_address, const std::string& trial, int seed) {
  MadeUpChunks chunks(kShape, seed);
  std::vector<v1::Definition> definitions = chunks.definitions();
  for (std::size_t i = 0; i < definitions.size(); ++i) {
    definitions[i].set_metric_group(kGroups[i % kGroups.size()]);
  }
  LoadStream stream(grpc_address, trial, 0, std::move(definitions));
  STEPWELL_RETURN_IF_ERROR(stream.Open());
  STEPWELL_RETURN_IF_ERROR(stream.Send(chunks.Next()));
  return stream.Finish(LoadStream::Ending::kClose);
}

}  // namespace

absl::Status FillManyTrials(const std::string& grpc_address, const std::string& prefix, int count) {
  std::vector<absl::Status> ended(kThreads);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      absl::Status& status = ended[static_cast<std::size_t>(thread)];
      for (int i = thread; i < count && status.ok(); i += kThreads) {
        status = FillTrial(grpc_address, absl::StrCat(prefix, "-", i), i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : ended) STEPWELL_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace stepwell::bench
