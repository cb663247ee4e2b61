// A message, complete or as events.
#pragma once

#include <memory>

#include "server/api/answer.h"
#include "server/api/work.h"
#include "server/served_model.h"
#include "sluice/answer_guide.h"

namespace sluice::server::anthropic {

struct MessageReplySettings {
  AnswerPlan plan = {};
  std::vector<std::string> stops = {};
  std::int64_t prompt_tokens = 0;
  std::int64_t most_tokens = 0;  // requested limit of the answer
};

std::unique_ptr<api::Reply> make_message_reply(const MessageReplySettings& settings,
                                               const ServedModel& model);

}  // namespace sluice::server::anthropic
