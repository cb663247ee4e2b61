// Throwing sluice::Error with a formatted message.
#pragma once

#include <fmt/core.h>

#include "sluice/error.h"

namespace sluice {

[[noreturn]] void fail_formatted(ErrorKind kind, fmt::string_view format, fmt::format_args args);

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  fail_formatted(kind, format, fmt::make_format_args(args...));
}

}  // namespace sluice
