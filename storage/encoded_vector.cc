#include "storage/encoded_vector.h"

namespace stepwell {
namespace {

std::size_t BitStringBytes(const BitString& bits) {
  return bits.bit_count == 0 ? 0 : kBitStringOverheadBytes + bits.bytes.size();
}

std::size_t ArrayBytes(std::size_t element_count) {
  return element_count == 0 ? 0 : kArrayOverheadBytes + 8 * element_count;
}

}  // namespace

std::size_t EncodedBytes(const EncodedVector& encoded) {
  return kVectorHeaderBytes + BitStringBytes(encoded.bits) + BitStringBytes(encoded.bits2) +
         ArrayBytes(encoded.dictionary.size()) + ArrayBytes(encoded.raw.size());
}

}  // namespace stepwell
