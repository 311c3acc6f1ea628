// PgKeptStatements: which statements a connection's server has parsed already, by text, and the name that
// each has there. Bounded: the one longest out of use goes. A name is given once, so that an answer which
// went astray can never be taken for another statement's. Confined to one thread.
//
//   const PgKeptStatements::Place place = kept.Use(sql);
//   if (place.let_go) ...   // send "deallocate NAME"
//   if (place.is_new) ...   // send its text under place.name; where that fails: kept.Forget(sql)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace stepwell {

class PgKeptStatements {
 public:
  // Of one connection; a plan takes some 100 kB of the server's memory.
  static constexpr std::size_t kCountMax = 64;

  struct Place {
    std::string name;
    bool is_new = false;
    // Made room: the server need not keep it any more.
    std::optional<std::string> let_go = std::nullopt;
  };
  Place Use(std::string_view sql);
  // As Use, of one that the server has; empty = it has not.
  std::string UseKnown(std::string_view sql);
  // The server does not have it.
  void Forget(const std::string& sql) { held_.erase(sql); }
  void Clear() { held_.clear(); }
  std::size_t count() const { return held_.size(); }

 private:
  struct Held {
    std::string name;
    std::uint64_t used = 0;
  };
  std::string LetOneGo();

  absl::flat_hash_map<std::string, Held> held_;
  std::uint64_t use_count_ = 0;
};

}  // namespace stepwell
