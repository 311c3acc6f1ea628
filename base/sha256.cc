#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace stepwell {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  STEPWELL_CHECK(context_ != nullptr);
  STEPWELL_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::Feed(std::string_view bytes) {
  STEPWELL_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::Finish() {
  std::string digest(kDigestBytes, '\0');
  unsigned int size = 0;
  STEPWELL_CHECK(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()),
                                    &size) == 1);
  STEPWELL_CHECK(size == kDigestBytes);
  return digest;
}

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

}  // namespace stepwell
