// Makes names from files and requests safe for error messages.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// 'text' in quotes, on one line and of limited length, whatever it contains.
std::string quote(std::string_view text);

}  // namespace sluice
