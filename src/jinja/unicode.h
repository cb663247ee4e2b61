// Python's view of text on top of UTF-8: code points, whitespace, case and printability.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::jinja {

// The code point at `position`, which is advanced past it; a byte that is not UTF-8 counts as one code point
// U+FFFD.
char32_t next_code_point(std::string_view text, std::size_t& position);

std::size_t count_code_points(std::string_view text);
// Byte offsets of every code point and of the end.
std::vector<std::size_t> code_point_offsets(std::string_view text);

bool is_space(char32_t code_point);
bool is_printable(char32_t code_point);
bool is_cased(char32_t code_point);
bool is_alpha(char32_t code_point);
bool is_decimal(char32_t code_point);
bool is_digit(char32_t code_point);    // including superscripts
bool is_numeric(char32_t code_point);  // including fractions and numerals
// Characters that begin and continue identifiers in Python.
bool begins_identifier(char32_t code_point);
bool continues_identifier(char32_t code_point);
// Full mappings, which may lengthen the text: "straße" becomes "STRASSE"; a final sigma has its own form.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
// text[begin:end] in lower case, taking the surrounding text into account.
std::string lower_within(std::string_view text, std::size_t begin, std::size_t end);
std::string to_title(std::string_view text);  // of the first letter of a word
std::string fold_case(std::string_view text);

// Strips code points of `characters`, or whitespace when it is null, from the chosen sides.
std::string_view strip(std::string_view text, const std::string_view* characters, bool left, bool right);

}  // namespace sluice::jinja
