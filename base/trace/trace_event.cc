#include "base/trace/trace_event.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "rapidjson/memorystream.h"
#include "rapidjson/reader.h"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"

namespace stepwell {
namespace {

using Utf8 = rapidjson::UTF8<>;
using Reader = rapidjson::GenericReader<Utf8, Utf8>;
// Numbers are not converted: nothing here needs them as doubles.
constexpr unsigned kFlags =
    rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseValidateEncodingFlag;
// Of ASCII, in a copy that is thrown away: texts and numbers are copied nowhere, encodings need no look.
constexpr unsigned kAsciiFlags =
    rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseInsituFlag;
// A type of its own: of the one it is the reader makes copies, whose place a handler does not see.
struct CopyStream : rapidjson::InsituStringStream {
  explicit CopyStream(char* text) : rapidjson::InsituStringStream(text) {}
};

bool IsAscii(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  std::uint64_t all = 0;
  std::size_t at = 0;
  for (; at + sizeof(all) <= text.size(); at += sizeof(all)) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, text.data() + at, sizeof(eight));
    all |= eight;
  }
  unsigned char rest = 0;
  for (; at < text.size(); ++at) rest |= static_cast<unsigned char>(text[at]);
  return (all & kHighBits) == 0 && rest < 0x80;
}

// Tells each member of the outermost object where its name and its value lie.
template <typename Stream, typename Take>
class MemberHandler : public rapidjson::BaseReaderHandler<Utf8, MemberHandler<Stream, Take>> {
 public:
  MemberHandler(std::string_view json, Stream& stream, Take take)
      : json_(json), stream_(stream), take_(std::move(take)) {}

  bool Null() { return Scalar(); }
  bool Bool(bool) { return Scalar(); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return Scalar(); }
  bool String(const char*, rapidjson::SizeType, bool) { return Scalar(); }
  bool StartObject() { return Start(); }
  bool StartArray() { return depth_ > 0 && Start(); }
  bool EndObject(rapidjson::SizeType) { return End(); }
  bool EndArray(rapidjson::SizeType) { return End(); }
  bool Key(const char*, rapidjson::SizeType, bool) {
    if (depth_ != 1) return true;
    const std::size_t end = stream_.Tell();
    // A quote within the name is escaped: those around it are the last and the last one before that ends the
    // member before.
    std::size_t begin = end - 1;
    do {
      begin = json_.rfind('"', begin - 1);
    } while (IsEscaped(begin));
    name_ = json_.substr(begin + 1, end - begin - 2);
    value_ = end;
    while (json_[value_] == ':' || json_[value_] == ' ' || json_[value_] == '\n' ||
           json_[value_] == '\r' || json_[value_] == '\t') {
      ++value_;
    }
    return true;
  }

 private:
  bool IsEscaped(std::size_t at) const {
    std::size_t backslashes = 0;
    while (backslashes < at && json_[at - backslashes - 1] == '\\') ++backslashes;
    return backslashes % 2 == 1;
  }
  // Only an object is of use.
  bool Scalar() {
    if (depth_ == 1) Take1();
    return depth_ > 0;
  }
  bool Start() {
    ++depth_;
    return true;
  }
  bool End() {
    if (--depth_ == 1) Take1();
    return true;
  }
  void Take1() {
    // Between a name and its value nothing but a colon and space lies.
    take_(name_, json_.substr(value_, stream_.Tell() - value_));
  }

  const std::string_view json_;
  Stream& stream_;
  const Take take_;
  int depth_ = 0;
  std::string_view name_;
  std::size_t value_ = 0;
};

template <typename Take>
bool ForEachMember(Reader& reader, std::string_view json, Take take) {
  rapidjson::MemoryStream stream(json.data(), json.size());
  MemberHandler<rapidjson::MemoryStream, Take> handler(json, stream, std::move(take));
  return !reader.Parse<kFlags>(stream, handler).IsError() && stream.Tell() == json.size();
}

template <typename Take>
bool ForEachMemberOfAscii(Reader& reader, std::string_view json, std::vector<char>& copy,
                          Take take) {
  if (copy.size() <= json.size()) copy.resize(2 * json.size() + 1);
  std::memcpy(copy.data(), json.data(), json.size());
  copy[json.size()] = '\0';
  CopyStream stream(copy.data());
  MemberHandler<CopyStream, Take> handler(json, stream, std::move(take));
  return !reader.Parse<kAsciiFlags>(stream, handler).IsError() && stream.Tell() == json.size();
}

std::string_view* SliceOf(TraceEvent& event, std::string_view name) {
  struct Named {
    std::string_view name;
    std::string_view TraceEvent::*slice;
  };
  static constexpr Named kNamed[] = {
      {"name", &TraceEvent::name},      {"cat", &TraceEvent::category},
      {"ts", &TraceEvent::time},        {"dur", &TraceEvent::duration},
      {"pid", &TraceEvent::pid},        {"tid", &TraceEvent::tid},
      {"args", &TraceEvent::args},      {"id", &TraceEvent::id},
      {"bind_id", &TraceEvent::bind_id}};
  for (const Named& each : kNamed) {
    if (each.name == name) return &(event.*each.slice);
  }
  return nullptr;
}

}  // namespace

struct TraceEventParser::Impl {
  Reader reader;
  std::vector<char> copy;
};

TraceEventParser::TraceEventParser() : impl_(std::make_unique<Impl>()) {}
TraceEventParser::~TraceEventParser() = default;

bool TraceEventParser::Parse(std::string_view json) {
  event_.phase = 0;
  event_.others.clear();
  for (std::string_view* slice :
       {&event_.name, &event_.category, &event_.time, &event_.duration, &event_.pid, &event_.tid,
        &event_.args, &event_.id, &event_.bind_id}) {
    *slice = {};
  }
  const auto take = [this](std::string_view name, std::string_view value) {
    if (std::string_view* slice = SliceOf(event_, name); slice != nullptr) {
      *slice = value;
    } else if (name == "ph") {
      event_.phase = value.size() == 3 && value[0] == '"' ? value[1] : '\0';
    } else {
      event_.others.emplace_back(name, value);
    }
  };
  const bool is_object = IsAscii(json)
                             ? ForEachMemberOfAscii(impl_->reader, json, impl_->copy, take)
                             : ForEachMember(impl_->reader, json, take);
  return is_object && event_.phase != 0;
}

std::optional<std::string> TextOfJson(std::string_view json) {
  struct Handler : rapidjson::BaseReaderHandler<Utf8, Handler> {
    bool Default() { return false; }
    bool String(const char* text, rapidjson::SizeType size, bool) {
      said.assign(text, size);
      return true;
    }
    std::string said;
  };
  if (json.empty() || json.front() != '"') return std::nullopt;
  Reader reader;
  Handler handler;
  rapidjson::MemoryStream stream(json.data(), json.size());
  if (reader.Parse<kFlags>(stream, handler).IsError()) return std::nullopt;
  return std::move(handler.said);
}

std::string_view TextOf(std::string_view json, std::string& scratch) {
  if (json.size() < 2 || json.front() != '"') return json;
  if (json.find('\\') == std::string_view::npos) return json.substr(1, json.size() - 2);
  scratch = TextOfJson(json).value_or(std::string(json));
  return scratch;
}

std::string_view MemberOfJson(std::string_view json, std::string_view name) {
  Reader reader;
  std::string_view found;
  const bool is_object =
      ForEachMember(reader, json, [&](std::string_view each, std::string_view value) {
        if (each == name) found = value;
      });
  return is_object ? found : std::string_view();
}

bool ForEachJsonMember(
    std::string_view json,
    absl::FunctionRef<void(std::string_view name, std::string_view value)> take) {
  Reader reader;
  return ForEachMember(reader, json, take);
}

void AppendJsonText(std::string_view text, std::string& json) {
  // Bytes that are no UTF-8 would make the whole file unreadable to others.
  std::string valid;
  rapidjson::MemoryStream stream(text.data(), text.size());
  struct Sink {
    std::string& out;
    void Put(char c) { out.push_back(c); }
  } sink{valid};
  while (stream.Tell() < text.size()) {
    const std::size_t before = valid.size();
    const std::size_t at = stream.Tell();
    if (!Utf8::Validate(stream, sink)) {
      valid.resize(before);
      valid += "\xEF\xBF\xBD";
      if (stream.Tell() == at) stream.Take();
    }
  }
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.String(valid.data(), static_cast<rapidjson::SizeType>(valid.size()));
  json.append(buffer.GetString(), buffer.GetSize());
}

}  // namespace stepwell
