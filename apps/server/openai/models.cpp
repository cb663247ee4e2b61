#include "server/openai/models.h"

#include <algorithm>
#include <ctime>

#include "server/api_error.h"

namespace sluice::server::openai {

namespace {

// One format for the clients of both protocols: Anthropic's read type, display_name and created_at.
Json entry(const ServedModel& model, const std::string& name) {
  char time[32];
  const std::time_t created = model.created;
  std::tm utc{};
  gmtime_r(&created, &utc);
  std::strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {{"id", name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "sluice"},
          {"type", "model"},
          {"display_name", name},
          {"created_at", time},
          {"context_length", model.context}};
}

}  // namespace

Json list_models(const ServedModel& model) {
  Json data = Json::array({entry(model, model.name)});
  for (const std::string& alias : model.aliases) data.push_back(entry(model, alias));
  return {{"object", "list"},
          {"data", data},
          {"has_more", false},
          {"first_id", model.name},
          {"last_id", data.back()["id"]}};
}

Json show_model(const ServedModel& model, const std::string& name) {
  const bool known = name == model.name ||
                     std::find(model.aliases.begin(), model.aliases.end(), name) != model.aliases.end();
  if (!known) throw not_found("The model '" + name + "' does not exist.", "model_not_found");
  return entry(model, name);
}

}  // namespace sluice::server::openai
