// The documents of a text file.
#pragma once

#include <string_view>
#include <vector>

namespace sluice::study {

inline constexpr std::string_view kEndOfDocument = "<|endoftext|>";

// What lies between the end marks, without line ends around it; empty ones are left out.
std::vector<std::string_view> split_documents(std::string_view text);

}  // namespace sluice::study
