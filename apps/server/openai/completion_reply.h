// Completions, whole or as chunks.
#pragma once

#include <memory>

#include "server/api/work.h"
#include "server/openai/request_fields.h"
#include "server/served_model.h"

namespace sluice::server::openai {

struct CompletionReplySettings {
  Common common = {};
  bool logprobs = false;
  std::size_t prompts = 1;
  std::size_t told = 1;                      // choices per prompt: the likeliest of those that are generated
  std::vector<std::string> echoes = {};      // per choice: what stands before its text
  bool prompt_logprobs = false;              // told with those of the answers; nothing is streamed then
  std::vector<std::int32_t> first_ids = {};  // per prompt: its first token, of which nothing can be told
};

std::unique_ptr<api::Reply> make_completion_reply(const CompletionReplySettings& settings,
                                                  const ServedModel& model);

}  // namespace sluice::server::openai
