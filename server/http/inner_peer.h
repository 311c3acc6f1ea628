// InnerPeer: where a call of our own services for a request of the HTTP port comes from, said within the process: with a
// random word of this process, which no client knows. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stepwell {

// A value for kPeerMetadata; `address` as AddressKey.
std::string InnerPeerText(std::string_view address);
// Nothing where it is not of this process.
std::optional<std::string> InnerPeerOf(std::string_view text_untrusted);

}  // namespace stepwell
