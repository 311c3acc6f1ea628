#include "base/trace/begun_slices.h"

#include <algorithm>
#include <utility>

namespace stepwell {

bool BegunSlices::Begin(Slice slice, Room& room) {
  const std::size_t bytes = BytesOf(slice);
  if (slices_.size() >= kOpenMax || room.used_bytes + bytes > kBytesMax) return false;
  room.used_bytes += bytes;
  slices_.push_back(std::move(slice));
  return true;
}

std::optional<BegunSlices::Slice> BegunSlices::End(std::string_view name, Room& room) {
  const std::size_t last = slices_.size() - std::min(slices_.size(), kLooksMax);
  for (std::size_t at = slices_.size(); at-- > last;) {
    if (name.empty() || slices_[at].name == name) return TakeAt(at, room);
  }
  return std::nullopt;
}

std::optional<BegunSlices::Slice> BegunSlices::TakeInnermost(Room& room) {
  if (slices_.empty()) return std::nullopt;
  return TakeAt(slices_.size() - 1, room);
}

std::size_t BegunSlices::BytesOf(const Slice& slice) {
  return sizeof(Slice) + slice.name.size() + slice.body.size();
}

BegunSlices::Slice BegunSlices::TakeAt(std::size_t at, Room& room) {
  Slice slice = std::move(slices_[at]);
  slices_.erase(slices_.begin() + static_cast<std::ptrdiff_t>(at));
  room.used_bytes -= BytesOf(slice);
  return slice;
}

}  // namespace stepwell
