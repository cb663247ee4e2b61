// A response, whole or as events.
#pragma once

#include <memory>

#include "server/api/answer.h"
#include "server/api/served_model.h"
#include "server/api/work.h"
#include "server/responses/store.h"
#include "sluice/answer_guide.h"

namespace sluice::server::responses {

struct ResponseSettings {
  std::string client;
  Store& store;
  bool keep = true;            // in the store, once it is done
  Json echo = Json::object();  // what the response repeats of its request
  Json input = Json::array();
  Json messages = Json::array();  // the conversation, without instructions
  AnswerPlan plan = {};
};

std::unique_ptr<Reply> make_response_reply(ResponseSettings settings, const ServedModel& model);

}  // namespace sluice::server::responses
