#include "checkpoint/stop_ids.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"

namespace sluice::checkpoint {
namespace {

// `eos_token_id` is an id or a list of ids.
void add_ids(const Json& object, const std::string& where, std::set<int>& ids) {
  const Json* value = json_find(object, "eos_token_id", where);
  if (value == nullptr) return;
  const std::string place = where + ": 'eos_token_id'";
  const auto found =
      value->is_array() ? json_as<std::vector<int>>(*value, place) : std::vector{json_as<int>(*value, place)};
  for (const int id : found) {
    if (id < 0) fail(ErrorKind::checkpoint, "{} is {}, expected a token id", place, id);
    ids.insert(id);
  }
}

// `eos_token` is a text or an object with the text as its `content`.
std::optional<std::string> eos_token(const Json& object, const std::string& where) {
  const Json* value = json_find(object, "eos_token", where);
  if (value == nullptr) return std::nullopt;
  const std::string place = where + ": 'eos_token'";
  return value->is_object() ? json_get<std::string>(*value, "content", place)
                            : json_as<std::string>(*value, place);
}

}  // namespace

std::vector<int> stop_ids(const std::filesystem::path& folder,
                          FunctionRef<std::optional<int>(std::string_view token)> token_id) {
  std::set<int> ids;
  const std::filesystem::path config = folder / "config.json";
  const Json root = read_json_file(config);
  add_ids(root, config.string(), ids);
  if (const Json* text = json_find(root, "text_config", config.string())) {
    add_ids(*text, config.string() + ": 'text_config'", ids);
  }
  if (const auto path = folder / "generation_config.json"; std::filesystem::exists(path)) {
    add_ids(read_json_file(path), path.string(), ids);
  }
  if (const auto path = folder / "tokenizer_config.json"; std::filesystem::exists(path)) {
    if (const auto token = eos_token(read_json_file(path), path.string())) {
      const std::optional<int> id = token_id(*token);
      if (!id)
        fail(ErrorKind::checkpoint, "{}: the vocabulary lacks the eos_token {}", path.string(),
             quote(*token));
      ids.insert(*id);
    }
  }
  return {ids.begin(), ids.end()};
}

}  // namespace sluice::checkpoint
