// NoFolds: a FoldStore that folds nothing and gives numbers, for tests of what asks for folds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "storage/fold_store.h"

namespace stepwell::testing {

class NoFolds : public FoldStore {
 public:
  absl::StatusOr<FoldResult> Fold(std::int64_t, const std::vector<WriterFold>&) override {
    return FoldResult{};
  }
  absl::StatusOr<std::optional<FoldResult>> FoldBulk(std::int64_t, const std::vector<WriterFold>&,
                                                     std::int32_t) override {
    return std::nullopt;
  }
  absl::StatusOr<MergeResult> Merge(std::int64_t, const MergeLimits&) override {
    return MergeResult{};
  }
  absl::StatusOr<FoldNo> NextFoldNo() override { return static_cast<FoldNo>(++fold_no_); }
  absl::Status AttachLeaves(std::int64_t) override { return absl::OkStatus(); }
  absl::Status RecycleJournal(std::int64_t, std::int64_t) override { return absl::OkStatus(); }
  absl::Status RecycleRecent(std::int64_t) override { return absl::OkStatus(); }

 private:
  std::int64_t fold_no_ = 0;
};

}  // namespace stepwell::testing
