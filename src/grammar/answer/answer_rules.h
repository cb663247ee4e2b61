// The form of a complete answer as rules: thinking, then text or tool calls, in one automaton.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "grammar/answer/argument_rules.h"
#include "grammar/answer/free_text.h"
#include "grammar/automaton/vocabulary.h"
#include "grammar/rules.h"
#include "sluice/answer.h"

namespace sluice::grammar::answer {

class AnswerRules {
 public:
  struct Parts {
    Rules& rules;
    regex::Lexer& lexer;
    const GrammarVocabulary::State& vocabulary;
    std::size_t max_bytes;  // of a tool's schema
  };

  AnswerRules(const AnswerSource& source, const Parts& parts);

  // `content` is the rule that constrains the text, if there is one.
  RuleId compile(std::optional<RuleId> content);

 private:
  // The text around the arguments of calls.
  struct CallForm {
    regex::Id next;             // between two calls,
    regex::Id last;             // and after the last one
    regex::Id begin, name_end;  // around the name,
    regex::Id end;              // and after the arguments
  };

  void add_thinking(NodeId from, NodeId answer);
  void add_answer(NodeId from, std::optional<RuleId> content);
  NodeId opened_calls(RuleId rule);
  void add_calls(NodeId from, const CallForm& form, bool several);
  void add_plain_calls(NodeId from);
  RuleId arguments(const AnswerTool& tool);
  CallForm call_form() const;
  CallForm json_form(regex::Id begin, regex::Id end) const;

  bool calls_allowed() const { return !source_.tools.empty(); }
  // The marker before all calls; empty if there is none.
  std::string_view calls_open() const;
  // What free text must not contain, because a parser would take it for the beginning of a call.
  std::vector<std::string_view> call_markers_of_text() const;

  const AnswerSource& source_;
  Parts parts_;
  Rules& rules_;
  regex::Arena& arena_;
  FreeText text_;
  NodeId end_ = 0;
  std::optional<NodeId> opened_calls_;
  std::map<const AnswerTool*, RuleId> arguments_;
};

}  // namespace sluice::grammar::answer
