// The documents of a text file.
#pragma once

#include <string_view>
#include <vector>

namespace sluice::study {

inline constexpr std::string_view kEndOfDocument = "<|endoftext|>";

// The texts between end markers, without line breaks around them; empty ones are left out.
std::vector<std::string_view> split_documents(std::string_view text);

}  // namespace sluice::study
