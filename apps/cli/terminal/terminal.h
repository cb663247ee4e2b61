// Properties of the terminal, and text that is safe to print there.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace sluice::cli::terminal {

bool is_terminal(std::FILE* stream);
// Columns of the terminal; 80 if there is none.
int width(std::FILE* stream);

// Control characters, also those beyond ASCII, and bytes that are not UTF-8 are written as \x1b, so that
// names from files and texts of models cannot control the terminal. With `lines`, line ends and tabs are
// kept.
std::string printable(std::string_view text, bool lines = false);

enum class Style { bold, dim, green, red };
// `text` in that style if `stream` is a terminal with colours and NO_COLOR is not set.
std::string styled(Style style, std::string_view text, std::FILE* stream);
bool has_colors(std::FILE* stream);

// Columns that one character takes: 0, 1 or 2.
int columns_of(char32_t character);
// Columns of valid UTF-8.
int columns_of(std::string_view text);

}  // namespace sluice::cli::terminal
