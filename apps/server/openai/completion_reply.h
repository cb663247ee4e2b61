// Completions, complete or as chunks.
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
  std::size_t told = 1;                      // choices per prompt to report, the most likely ones
  std::vector<std::string> echoes = {};      // per choice: the text before its own
  bool prompt_logprobs = false;              // reported with those of the answers; disables streaming
  std::vector<std::int32_t> first_ids = {};  // per prompt: its first token, which has no log-probability
};

std::unique_ptr<api::Reply> make_completion_reply(const CompletionReplySettings& settings,
                                                  const ServedModel& model);

}  // namespace sluice::server::openai
