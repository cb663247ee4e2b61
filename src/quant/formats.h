// Every quantisation format, in the order of ops::QuantMode.
#pragma once

#include <array>
#include <string>

#include "quant/affine.h"
#include "quant/mxfp4.h"
#include "quant/mxfp8.h"
#include "quant/nvfp4.h"

namespace sluice::quant {

inline constexpr std::array kFormats = {&kAffine, &kMxfp4, &kMxfp8, &kNvfp4};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kFormats.size(); ++i)
    if (static_cast<std::size_t>(kFormats[i]->mode) != i) return false;
  return true;
}
static_assert(in_order(), "formats are looked up by their mode");

constexpr const Format& format_of(ops::QuantMode mode) {
  return *kFormats[static_cast<std::size_t>(mode)];
}

// Null if the name is unknown.
const Format* find_format(std::string_view name);
// "affine, mxfp4, ..." for messages and help.
std::string format_names();
// "2, 3, 4": the allowed values, ascending.
std::string allowed_text(std::span<const int> allowed);
bool allows(std::span<const int> allowed, int value);

// "BF16", "4-bit g64", or the name of a format with a single form.
std::string label(const ops::Weight& weight);

}  // namespace sluice::quant
