// The formats of strings that are held to, as regular expressions.
#pragma once

#include <optional>
#include <string_view>

namespace sluice::grammar {

struct Format {
  enum class Kind { pattern, annotation, unsupported } kind;
  std::string_view pattern;  // of the whole string
};

// Names that no standard defines say nothing about the string.
Format find_format(std::string_view name);

}  // namespace sluice::grammar
