// Wire: the short name of the wire contract's generated types.
#pragma once

namespace stepwell {
namespace v1 {}
namespace pb = v1;
}  // namespace stepwell
