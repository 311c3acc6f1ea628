// ByteWriter and ByteReader: little-endian numbers in and out of the spool's records. A reader
// never reads past its end: it turns bad and stays bad, and is asked once at the end.
// Thread-compatible.
//
//   ByteReader reader(payload);
//   const std::uint64_t sequence = reader.U64();
//   if (!reader.ok()) return Corrupt();
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace stepwell::agent {

class ByteWriter {
 public:
  void U8(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void U32(std::uint32_t value) { Raw(&value, sizeof(value)); }
  void U64(std::uint64_t value) { Raw(&value, sizeof(value)); }
  void I64(std::int64_t value) { Raw(&value, sizeof(value)); }
  void Bytes(std::string_view bytes) { bytes_.append(bytes); }
  // A u32 length, then the bytes.
  void Text(std::string_view bytes) {
    U32(static_cast<std::uint32_t>(bytes.size()));
    Bytes(bytes);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  void Raw(const void* data, std::size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t U8() { return Number<std::uint8_t>(); }
  std::uint32_t U32() { return Number<std::uint32_t>(); }
  std::uint64_t U64() { return Number<std::uint64_t>(); }
  std::int64_t I64() { return Number<std::int64_t>(); }
  // Views into the reader's bytes.
  std::string_view Bytes(std::size_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      size = 0;
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::string_view Text() { return Bytes(U32()); }
  std::string_view Rest() { return Bytes(rest_.size()); }
  bool AtEnd() const { return rest_.empty(); }
  bool ok() const { return ok_; }

 private:
  template <typename T>
  T Number() {
    T value{};
    const std::string_view bytes = Bytes(sizeof(T));
    if (bytes.size() == sizeof(T)) std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace stepwell::agent
