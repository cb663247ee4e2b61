// Options that constrain the answer.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "parser.h"
#include "sluice/answer_guide.h"

namespace sluice::cli::options {

class Answer {
 public:
  void add(Command& command);
  // Reads the files and checks the combination of options, before a model is loaded.
  void resolve();
  // Whether any constraint was given.
  bool given() const { return request_.content || !request_.tools.empty() || max_thinking_; }
  // Variables for the chat template: the tools.
  std::string template_variables() const;
  // The plan for the answer to a rendered prompt; `chat` is false for raw text.
  // Whether only some texts will do: one that is cut is none of them.
  bool demands_form() const {
    return request_.content || request_.choice == ToolChoice::required ||
           request_.choice == ToolChoice::named;
  }
  AnswerPlan plan(const Engine& engine, const std::string& prompt, bool chat) const;

 private:
  std::string schema_, regex_, grammar_, tools_, tool_choice_ = "auto";
  std::vector<std::string> choices_;
  bool json_object_ = false;
  std::optional<std::int64_t> max_thinking_;
  AnswerRequest request_;
};

// The parts of an answer: {"thinking", "content", "calls"}.
nlohmann::ordered_json answer_json(const AnswerPlan& plan, const std::string& text);

}  // namespace sluice::cli::options
