// OpensslText: what OpenSSL's queue of errors says went wrong, of this thread; it is empty afterwards.
// And owners of OpenSSL's objects.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>

namespace stepwell {

struct OpensslFree {
  void operator()(BIO* it) const { BIO_free_all(it); }
  void operator()(EVP_PKEY* it) const { EVP_PKEY_free(it); }
  void operator()(X509* it) const { X509_free(it); }
  void operator()(SSL_CTX* it) const { SSL_CTX_free(it); }
  void operator()(SSL* it) const { SSL_free(it); }
};
template <typename T>
using OpensslOwned = std::unique_ptr<T, OpensslFree>;

// `text` outlives it.
inline OpensslOwned<BIO> BioOf(std::string_view text) {
  return OpensslOwned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

inline std::string OpensslText() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "unknown error" : reason;
}

}  // namespace stepwell
