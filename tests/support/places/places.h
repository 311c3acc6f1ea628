#pragma once

#include <string>

// Where this checkout and this build lie, for tests that read or start what is in them. One source knows it, so that a
// compiler's cache serves all others in any clone. Any thread.
namespace stepwell {

// SourcePlace("docs/http.md"): the absolute path of a file of the checkout.
std::string SourcePlace(const std::string& below);

// BuildPlace("bin/agent_probe"): the absolute path of what was built.
std::string BuildPlace(const std::string& below);

}  // namespace stepwell
