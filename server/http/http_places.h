// HttpPlaces: how many connections there may be, in all and of one address (AddressOfSocket). Confined to one thread.
//
//   if (!places.Take(address)) return Refuse();
//   ...
//   places.Leave(address);
#pragma once

#include <map>
#include <string>

namespace stepwell {

class HttpPlaces {
 public:
  HttpPlaces(int count_max, int per_address_max)
      : count_max_(count_max), per_address_max_(per_address_max) {}

  bool Take(const std::string& address) {
    if (count_ >= count_max_) return false;
    int& held = held_[address];
    if (held >= per_address_max_) return false;
    ++held;
    ++count_;
    return true;
  }
  // REQUIRES: it was taken.
  void Leave(const std::string& address) {
    --count_;
    const auto held = held_.find(address);
    if (--held->second == 0) held_.erase(held);
  }
  int count() const { return count_; }

 private:
  const int count_max_;
  const int per_address_max_;
  int count_ = 0;
  std::map<std::string, int> held_;
};

}  // namespace stepwell
