// The tables of find_filter, find_test and find_method, and the text operations they share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/runtime/runtime.h"

namespace sluice::jinja {

struct NamedBuiltin {
  std::string_view name;
  Builtin body;
};
using Builtins = std::vector<NamedBuiltin>;

const Builtins& text_filters();
const Builtins& sequence_filters();
const Builtins& selection_filters();
const Builtins& number_filters();
const Builtins& markup_filters();
const Builtins& layout_filters();
const Builtins& pretty_print_filters();
const Builtins& urlize_filters();
const Builtins& text_methods();
const Builtins& split_methods();

std::string capitalize(std::string_view text);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
// Replaces up to `count` occurrences; all of them if it is negative.
std::string replace(Budget& budget, std::string_view text, std::string_view old, std::string_view with,
                    std::int64_t count);

// The value at a path like "a.b.0", or the item itself without a path.
Value at_path(Runtime& runtime, Value item, const Value* path, const Value* missing = nullptr);
// Strings in lower case, other values unchanged.
Value ignore_case(const Value& value);

}  // namespace sluice::jinja
