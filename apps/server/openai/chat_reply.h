// Chat completions, complete or as chunks.
#pragma once

#include <memory>

#include "server/api/work.h"
#include "server/openai/request_fields.h"
#include "server/served_model.h"
#include "sluice/answer_guide.h"

namespace sluice::server::openai {

struct ChatReplySettings {
  Common common = {};
  bool logprobs = false;
  AnswerPlan plan = {};
};

std::unique_ptr<api::Reply> make_chat_reply(const ChatReplySettings& settings, const ServedModel& model,
                                            std::size_t choices);

}  // namespace sluice::server::openai
