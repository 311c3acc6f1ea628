#include "bench/traces/generated_trace.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace stepwell::bench {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

// About 270 bytes each, as Kineto writes them.
void AppendEvent(int index, std::string& out) {
  absl::StrAppend(&out, index == 0 ? "\n" : ",\n",
                  R"({"ph":"X","cat":"cpu_op","name":"aten::layer_norm_)", index % 97,
                  R"(","pid":4711,"tid":)", 4711 + index % 4, R"(,"ts":)", index * 3, ".",
                  100 + index % 900, R"(,"dur":2.125,"args":{"External id":)", index,
                  R"(,"Record function id":0,"Ev Idx":)", index,
                  R"(,"Input Dims":[[32,512,1024],[1024],[1024],[]]}})");
}

}  // namespace

TraceSource Generated(int rank, int event_count) {
  return [rank, event_count](const TakeBytes& take) -> absl::Status {
    std::string piece =
        absl::StrCat(R"({"schemaVersion":1,"distributedInfo":{"rank":)", rank,
                     R"(},"baseTimeNanoseconds":1735611996000000000,"traceEvents":[)");
    for (int i = 0; i < event_count; ++i) {
      AppendEvent(i, piece);
      if (piece.size() < kPieceBytes) continue;
      if (absl::Status taken = take(piece); !taken.ok()) return taken;
      piece.clear();
    }
    return take(piece + "\n]}\n");
  };
}

}  // namespace stepwell::bench
