// A response, whole or as events.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "server/api/answer.h"
#include "server/api/work.h"
#include "server/responses/store.h"
#include "server/served_model.h"
#include "sluice/answer_guide.h"

namespace sluice::server::responses {

struct ResponseSettings {
  std::string client;
  Store& store;
  bool keep = true;            // in the store, once it is done
  bool logprobs = false;       // of the tokens of its text
  bool background = false;     // whether it goes on without its client
  Json echo = Json::object();  // what the response repeats of its request
  Json input = Json::array();
  Json messages = Json::array();  // the conversation, without instructions
  // Of functions that are in a namespace: what both are called, by the name that the model knows.
  struct Member {
    std::string name_space, name;
  };
  std::map<std::string, Member> members = {};
  AnswerPlan plan = {};
  std::shared_ptr<api::Recording> recording = nullptr;  // of its events, for those who come back
};

std::unique_ptr<api::Reply> make_response_reply(ResponseSettings settings, const ServedModel& model);

}  // namespace sluice::server::responses
