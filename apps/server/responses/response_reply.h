// A response, complete or as events.
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
  bool keep = true;            // whether to store it once it is done
  bool logprobs = false;       // whether to report those of its text
  bool background = false;     // whether it continues without its client
  Json echo = Json::object();  // fields of the request that the response repeats
  Json input = Json::array();
  Json messages = Json::array();  // the conversation, without instructions
  // For functions in a namespace: the namespace and function, by the name that the model knows.
  struct Member {
    std::string name_space, name;
  };
  std::map<std::string, Member> members = {};
  AnswerPlan plan = {};
  std::shared_ptr<api::Recording> recording = nullptr;  // of its events, for clients that come back
};

std::unique_ptr<api::Reply> make_response_reply(ResponseSettings settings, const ServedModel& model);

}  // namespace sluice::server::responses
