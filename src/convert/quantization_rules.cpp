#include "convert/quantization_rules.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "base/quote.h"

namespace sluice::convert {
namespace {

using checkpoint::QuantParams;

struct Recipe {
  std::string_view name;
  int low;
  int high;
};
constexpr std::array kRecipes = {Recipe{"mixed_2_6", 2, 6}, Recipe{"mixed_3_4", 3, 4},
                                 Recipe{"mixed_3_6", 3, 6}, Recipe{"mixed_4_6", 4, 6}};

const Recipe* find_recipe(std::string_view name) {
  const auto found = std::find_if(kRecipes.begin(), kRecipes.end(),
                                  [name](const Recipe& recipe) { return recipe.name == name; });
  return found == kRecipes.end() ? nullptr : &*found;
}

// 0 for modules outside of layers.
int64_t layer_of(std::string_view module) {
  constexpr std::string_view kLayers = "layers.";
  const size_t at = module.find(kLayers);
  int64_t layer = 0;
  if (at != std::string_view::npos)
    std::from_chars(module.data() + at + kLayers.size(), module.data() + module.size(), layer);
  return layer;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [text](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

// Values and down projections suffer most from coarse quantisation: they get the high number of bits in the
// first and last eighth of the layers and in every third in between; so does the output head.
int recipe_bits(const Recipe& recipe, std::string_view module, int64_t layers) {
  const int64_t layer = layer_of(module);
  const int64_t eighth = layers / 8;
  const bool sensitive = layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
  const bool high = contains_any(module, {"lm_head"}) ||
                    (sensitive && contains_any(module, {"v_proj", "v_a_proj", "v_b_proj", "down_proj"}));
  return high ? recipe.high : recipe.low;
}

void check_groups(const Parameter& parameter) {
  if (parameter.columns() % parameter.quant->group_size == 0) return;
  fail(ErrorKind::unsupported,
       "{} is quantised in groups of {}, but its rows have {} values: use another group size",
       quote(parameter.module()), parameter.quant->group_size, parameter.columns());
}

}  // namespace

void check_options(const ConvertOptions& options) {
  constexpr std::array kBits = {2, 3, 4, 5, 6, 8};
  constexpr std::array kGroups = {32, 64, 128};
  constexpr std::array<std::string_view, 4> kTypes = {"", "bfloat16", "float16", "float32"};
  const auto among = [](const auto& values, const auto& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  if (!among(kBits, options.bits))
    fail(ErrorKind::input, "{} bits are requested, expected 2, 3, 4, 5, 6 or 8", options.bits);
  if (!among(kGroups, options.group_size))
    fail(ErrorKind::input, "groups of {} are requested, expected 32, 64 or 128", options.group_size);
  if (!among(kTypes, options.dtype))
    fail(ErrorKind::input, "the type {} is requested, expected bfloat16, float16 or float32",
         quote(options.dtype));
  if (!options.mixed.empty() && find_recipe(options.mixed) == nullptr)
    fail(ErrorKind::input, "the recipe {} is requested, expected {}", quote(options.mixed),
         fmt::join(convert_recipes(), ", "));
}

Json assign_quantization(std::vector<Parameter>& parameters, const models::ConversionRules& rules,
                         int64_t layers, const ConvertOptions& options) {
  Json block{{"bits", options.bits}, {"group_size", options.group_size}, {"mode", "affine"}};
  const Recipe* recipe = find_recipe(options.mixed);
  for (Parameter& parameter : parameters) {
    if (!parameter.quantizable || parameter.columns() % options.group_size != 0) continue;
    const std::string module = parameter.module();
    QuantParams params{.bits = options.bits, .group_size = options.group_size};
    if (recipe != nullptr) {
      params.bits = recipe_bits(*recipe, module, layers);
      block[module] = {{"bits", params.bits}, {"group_size", params.group_size}, {"mode", "affine"}};
    } else if (const auto fine = rules.eight_bit_modules;
               std::any_of(fine.begin(), fine.end(), [&](auto end) { return module.ends_with(end); })) {
      params = {.bits = 8, .group_size = 64};
      block[module] = {{"bits", params.bits}, {"group_size", params.group_size}};
    }
    parameter.quant = params;
    check_groups(parameter);
  }
  return block;
}

}  // namespace sluice::convert

namespace sluice {

const std::vector<std::string>& convert_recipes() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    result.reserve(std::size(convert::kRecipes));
    for (const auto& recipe : convert::kRecipes) result.emplace_back(recipe.name);
    return result;
  }();
  return names;
}

}  // namespace sluice
