// Attributes of op files: conversion between strings and values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::runner {

double parse_number(std::string_view op, std::string_view attribute, const std::string& text);
std::int64_t parse_integer(std::string_view op, std::string_view attribute, const std::string& text);
bool parse_bool(std::string_view op, std::string_view attribute, const std::string& text);
// The index of `text` in `names`.
std::size_t parse_choice(std::string_view op, std::string_view attribute, const std::string& text,
                         std::span<const std::string_view> names);

}  // namespace sluice::runner
