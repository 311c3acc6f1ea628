// ShellWord: a text as a shell takes it for one word. Pure.
#pragma once

#include <string>
#include <string_view>

namespace stepwell {

// As it is, or within '...' where a shell would read something else.
std::string ShellWord(std::string_view text);

}  // namespace stepwell
