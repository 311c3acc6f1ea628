#include "base/trace/json_members.h"

namespace stepwell {

JsonMembers::JsonMembers(std::string_view object) : json_(object) {
  // Behind its end where it is no object.
  at_ = !object.empty() && object.front() == '{' ? 1 : object.size();
}

void JsonMembers::PassSpaces() {
  while (at_ < json_.size() &&
         (json_[at_] == ' ' || json_[at_] == '\n' || json_[at_] == '\r' || json_[at_] == '\t')) {
    ++at_;
  }
}

bool JsonMembers::PassText() {
  for (++at_; at_ < json_.size(); ++at_) {
    if (json_[at_] == '"') {
      ++at_;
      return true;
    }
    if (json_[at_] == '\\') ++at_;
  }
  at_ = json_.size();
  return false;
}

bool JsonMembers::PassValue() {
  int depth = 0;
  while (at_ < json_.size()) {
    const char c = json_[at_];
    if (c == '"') {
      if (!PassText()) return false;
      if (depth == 0) return true;
      continue;
    }
    if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      // Of the object around a number or a word.
      if (depth == 0) return true;
      if (--depth == 0) {
        ++at_;
        return true;
      }
    } else if (depth == 0 && (c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t')) {
      return true;
    }
    ++at_;
  }
  return false;
}

bool JsonMembers::Next() {
  PassSpaces();
  if (at_ < json_.size() && json_[at_] == ',') {
    ++at_;
    PassSpaces();
  }
  if (at_ >= json_.size() || json_[at_] != '"') return false;
  const std::size_t name_at = at_ + 1;
  if (!PassText()) return false;
  name_ = json_.substr(name_at, at_ - 1 - name_at);
  PassSpaces();
  if (at_ >= json_.size() || json_[at_] != ':') return false;
  ++at_;
  PassSpaces();
  const std::size_t value_at = at_;
  if (!PassValue()) return false;
  value_ = json_.substr(value_at, at_ - value_at);
  return true;
}

std::string_view MemberOf(std::string_view object, std::string_view name) {
  std::string_view found;
  for (JsonMembers members(object); members.Next();) {
    if (members.name() == name) found = members.value();
  }
  return found;
}

}  // namespace stepwell
