#include "server/local/openapi.h"

namespace sluice::server::local {

namespace {

// Schemas of request bodies; parameters that are not listed are rejected, unless a protocol has them and they
// have no effect here.
constexpr const char* kSchemas = R"json({
  "Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "object", "required": ["message"],
    "properties": {"message": {"type": "string"}, "type": {"type": "string"}, "param": {"type": ["string", "null"]},
                   "code": {"type": ["string", "null"]}}}}},
  "Message": {"type": "object", "required": ["role", "content"], "properties": {
    "role": {"enum": ["system", "developer", "user", "assistant", "tool"]}, "content": {"type": "string"}}},
  "Sampling": {"type": "object", "properties": {
    "model": {"type": "string"}, "stream": {"type": "boolean"},
    "temperature": {"type": "number", "minimum": 0, "maximum": 2}, "top_p": {"type": "number", "minimum": 0, "maximum": 1},
    "top_k": {"type": "integer", "minimum": -1, "maximum": 1073741824}, "min_p": {"type": "number", "minimum": 0, "maximum": 1},
    "repetition_penalty": {"type": "number", "minimum": 0.01, "maximum": 100},
    "presence_penalty": {"type": "number", "minimum": -2, "maximum": 2},
    "frequency_penalty": {"type": "number", "minimum": -2, "maximum": 2}, "seed": {"type": "integer", "minimum": 0, "maximum": 4294967295},
    "stop": {"type": "array", "maxItems": 16, "items": {"type": "string"}}, "ignore_eos": {"type": "boolean"},
    "min_tokens": {"type": "integer", "minimum": 0, "maximum": 1073741824}, "cache_salt": {"type": "string"}, "prompt_cache_key": {"type": "string"},
    "priority": {"type": "integer", "minimum": -1000, "maximum": 1000}}},
  "ChatCompletion": {"allOf": [{"$ref": "#/components/schemas/Sampling"}, {"type": "object", "required": ["messages"],
    "properties": {"messages": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Message"}},
      "max_tokens": {"type": "integer", "minimum": 1, "maximum": 1073741824}, "n": {"type": "integer", "minimum": 1, "maximum": 16},
      "logprobs": {"type": "boolean"}, "user": {"type": "string"}, "metadata": {"type": "object"},
      "reasoning_effort": {"enum": ["none", "minimal", "low", "medium", "high"]}, "chat_template_kwargs": {"type": "object"}}}]},
  "Completion": {"allOf": [{"$ref": "#/components/schemas/Sampling"}, {"type": "object", "required": ["prompt"],
    "properties": {"prompt": {"type": "string", "minLength": 1}, "max_tokens": {"type": "integer", "minimum": 1, "maximum": 1073741824},
      "n": {"type": "integer", "minimum": 1, "maximum": 16}, "logprobs": {"type": "integer", "minimum": 0, "maximum": 20}}}]},
  "Response": {"allOf": [{"$ref": "#/components/schemas/Sampling"}, {"type": "object", "required": ["input"],
    "properties": {"input": {"type": "string", "minLength": 1}, "instructions": {"type": "string"},
      "max_output_tokens": {"type": "integer", "minimum": 1, "maximum": 1073741824}, "store": {"type": "boolean"}}}]},
  "AnthropicMessage": {"allOf": [{"$ref": "#/components/schemas/Sampling"}, {"type": "object", "required": ["messages", "max_tokens"],
    "properties": {"max_tokens": {"type": "integer", "minimum": 1, "maximum": 1073741824}, "system": {"type": "string"},
      "messages": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/AnthropicTurn"}}}}]},
  "AnthropicTurn": {"type": "object", "required": ["role", "content"], "properties": {
    "role": {"enum": ["user", "assistant", "system"]}, "content": {"type": "string"}}},
  "AnthropicCount": {"type": "object", "required": ["messages"], "properties": {"model": {"type": "string"},
    "system": {"type": "string"},
    "messages": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/AnthropicTurn"}}}},
  "Tokenize": {"type": "object", "required": ["content"], "properties": {"content": {"type": "string"},
    "add_special": {"type": "boolean"}, "with_pieces": {"type": "boolean"}}},
  "Detokenize": {"type": "object", "required": ["tokens"], "properties": {
    "tokens": {"type": "array", "items": {"type": "integer", "minimum": 0}}}},
  "Conversation": {"type": "object"}
})json";

struct Operation {
  const char* method;
  const char* path;
  const char* summary;
  const char* body = nullptr;  // the schema of the request body
};

constexpr Operation kOperations[] = {
    {"get", "/", "The chat page"},
    {"get", "/health", "Whether the server answers requests"},
    {"get", "/metrics", "Counters in Prometheus' text format"},
    {"get", "/openapi.json", "This description"},
    {"post", "/tokenize", "The tokens of a text", "Tokenize"},
    {"post", "/detokenize", "The text of tokens", "Detokenize"},
    {"get", "/v1/sluice/state", "What is running"},
    {"get", "/v1/sluice/cache",
     "What is cached of prompts, and why not more of recent requests; ?request=ID: of one; ?tree: as a tree"},
    {"delete", "/v1/sluice/cache", "Empty the prefix cache"},
    {"get", "/v1/sluice/conversations", "The page's conversations"},
    {"get", "/v1/sluice/conversations/{id}", "One of them"},
    {"put", "/v1/sluice/conversations/{id}", "Save one", "Conversation"},
    {"delete", "/v1/sluice/conversations/{id}", "Remove one"},
    {"get", "/v1/models", "The models"},
    {"get", "/v1/models/{id}", "One of them"},
    {"post", "/v1/chat/completions", "Answer a chat", "ChatCompletion"},
    {"post", "/v1/chat/completions/input_tokens", "Count the tokens of a chat", "ChatCompletion"},
    {"post", "/v1/completions", "Continue a text", "Completion"},
    {"post", "/v1/responses", "Answer, and store the response", "Response"},
    {"post", "/v1/responses/input_tokens", "Count the tokens of such a request", "Response"},
    {"get", "/v1/responses/{id}",
     "A stored response, or one that is being generated; ?stream=true&starting_after=N: its events"},
    {"delete", "/v1/responses/{id}", "Delete one"},
    {"get", "/v1/responses/{id}/input_items", "Its input items"},
    {"post", "/v1/responses/{id}/cancel", "Cancel one that is being generated"},
    {"post", "/v1/messages", "Answer a chat in Anthropic's protocol", "AnthropicMessage"},
    {"post", "/v1/messages/count_tokens", "Count the tokens of one", "AnthropicCount"},
};

Json describe(const Operation& operation) {
  Json json{{"summary", operation.summary},
            {"responses",
             {{"200", {{"description", "done"}}},
              {"default",
               {{"description", "an error"},
                {"content", {{"application/json", {{"schema", {{"type", "object"}}}}}}}}}}}};
  if (std::string_view(operation.path).find("{id}") != std::string_view::npos)
    json["parameters"] = Json::array({{{"name", "id"},
                                       {"in", "path"},
                                       {"required", true},
                                       {"schema", {{"type", "string"}, {"minLength", 1}}}}});
  if (operation.body != nullptr) {
    const std::string schema = std::string("#/components/schemas/") + operation.body;
    json["requestBody"] = {{"required", true},
                           {"content", {{"application/json", {{"schema", {{"$ref", schema}}}}}}}};
  }
  return json;
}

}  // namespace

Json openapi() {
  Json spec{
      {"openapi", "3.1.0"}, {"info", {{"title", "sluice"}, {"version", "1"}}}, {"paths", Json::object()}};
  for (const Operation& operation : kOperations)
    spec["paths"][operation.path][operation.method] = describe(operation);
  spec["components"] = {{"schemas", Json::parse(kSchemas)},
                        {"securitySchemes", {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}}}}};
  return spec;
}

}  // namespace sluice::server::local
