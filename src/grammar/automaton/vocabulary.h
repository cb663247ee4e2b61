// What a vocabulary keeps for its grammars: the trie of its tokens, and tables of lexemes that many grammars
// share.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/automaton/lexeme_table.h"
#include "grammar/automaton/run_table.h"
#include "grammar/automaton/token_trie.h"
#include "sluice/grammar.h"

namespace sluice {

struct GrammarVocabulary::State {
  std::string text;                     // all bytes of all tokens
  std::vector<std::string_view> bytes;  // by id, into text
  std::vector<std::int32_t> stop;
  grammar::TokenTrie trie;

  // Tables by the description of their expressions.
  mutable std::mutex mutex;
  mutable std::unordered_map<std::string, std::shared_ptr<const grammar::RunTable>> runs;

  grammar::Slice string_chars;
};

}  // namespace sluice
