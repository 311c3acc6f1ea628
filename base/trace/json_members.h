// JsonMembers: the members of an object that a parser has found to be valid JSON (the `args` of a TraceEvent), one after the
// other, without another look at whether it is valid. Of what is no object there are none; what is not
// valid is read within its bounds, and means nothing.
//
//   for (JsonMembers members(event.args); members.Next();) Use(members.name(), members.value());
#pragma once

#include <cstddef>
#include <string_view>

namespace stepwell {

class JsonMembers {
 public:
  explicit JsonMembers(std::string_view object);

  // False: there is none any more.
  bool Next();
  // As they were written, the name without its quotes. Valid as long as the object is.
  std::string_view name() const { return name_; }
  std::string_view value() const { return value_; }

 private:
  void PassSpaces();
  // From a quote on: behind the one that ends it.
  bool PassText();
  bool PassValue();

  const std::string_view json_;
  std::size_t at_ = 0;
  std::string_view name_;
  std::string_view value_;
};

// The value of a member of such an object, the last of several; empty: it has none.
std::string_view MemberOf(std::string_view object, std::string_view name);

}  // namespace stepwell
