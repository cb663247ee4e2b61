#include "server/local/tokens.h"

#include "server/api/chat_prompt.h"
#include "server/api/fields.h"
#include "server/api_error.h"
#include "sluice/token_bytes.h"

namespace sluice::server::local {

namespace {

std::vector<std::int32_t> read_ids(api::Fields& fields, const ServedModel& model) {
  fields.need("tokens");
  std::vector<std::int32_t> ids;
  for (const Json& one : *fields.array("tokens")) {
    if (!one.is_number_integer() || one < 0 || one >= model.engine->summary().vocab)
      throw bad_request("Invalid 'tokens': expected tokens of this model.", "tokens");
    ids.push_back(one.get<std::int32_t>());
  }
  return ids;
}

// The text of a token, or its bytes if it is a part of a character.
Json piece_of(const Engine& engine, std::int32_t id) {
  std::string text = engine.decode(std::span(&id, 1), false);
  const std::string bytes = token_bytes(engine, id);
  if (text == bytes) return text;
  Json out = Json::array();
  for (const char c : bytes) out.push_back(static_cast<unsigned char>(c));
  return out;
}

}  // namespace

Json tokenize(const Json& body, const ServedModel& model) {
  api::Fields fields(body);
  if (const auto name = fields.text("model")) model.check_name(*name);
  std::vector<std::int32_t> ids;
  const bool special = fields.flag("add_special").value_or(fields.flag("add_special_tokens").value_or(false));
  if (const Json* messages = fields.find("messages")) {
    api::ChatSettings settings;
    settings.variables = api::template_variables(fields.object("chat_template_kwargs"), "");
    ids = api::render_chat(model, api::template_messages(*messages), settings).ids;
  } else {
    const auto content = fields.text("content");
    ids = model.engine->encode(content                             ? *content
                               : fields.need("prompt").is_string() ? *fields.text("prompt")
                                                                   : "",
                               special);
  }
  Json out{{"tokens", ids}, {"count", ids.size()}, {"max_model_len", model.context}};
  if (fields.flag("with_pieces").value_or(false)) {
    out["tokens"] = Json::array();
    for (const std::int32_t id : ids)
      out["tokens"].push_back({{"id", id}, {"piece", piece_of(*model.engine, id)}});
  }
  fields.ignore({"return_token_strs", "parse_special"});
  fields.refuse_others();
  return out;
}

Json detokenize(const Json& body, const ServedModel& model) {
  api::Fields fields(body);
  if (const auto name = fields.text("model")) model.check_name(*name);
  const std::string text = model.engine->decode(read_ids(fields, model), false);
  fields.refuse_others();
  return {{"content", text}, {"prompt", text}};
}

}  // namespace sluice::server::local
