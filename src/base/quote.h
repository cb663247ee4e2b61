// Names from files and requests, made fit for an error message.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

// 'text' in quotes, on one line and of bounded length whatever it holds.
std::string quote(std::string_view text);

}  // namespace sluice
