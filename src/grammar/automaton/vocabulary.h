// What a vocabulary keeps for its grammars: the trie of its tokens, and lexeme tables that many grammars
// share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/automaton/lexeme_table.h"
#include "grammar/automaton/run_table.h"
#include "grammar/automaton/token_trie.h"
#include "sluice/grammar.h"

namespace sluice::grammar::automaton {

// Named tokens are spelled between two bytes that never occur in UTF-8, so nothing else matches them.
inline constexpr char kTokenMark = '\xFF';
std::string token_spelling(std::string_view name);

}  // namespace sluice::grammar::automaton

namespace sluice {

struct GrammarVocabulary::State {
  bool is_named(std::string_view name) const { return named.contains(name); }

  std::string text;                     // all bytes of all tokens
  std::vector<std::string_view> bytes;  // by id, into text
  std::vector<std::int32_t> stop;
  std::map<std::string, std::int32_t, std::less<>> named;  // ids by name
  grammar::automaton::TokenTrie trie;

  // Tables by the description of their regular expressions.
  mutable std::mutex mutex;
  mutable std::unordered_map<std::string, std::shared_ptr<const grammar::automaton::RunTable>> runs;
  mutable std::unordered_map<std::string, std::shared_ptr<const grammar::automaton::LexemeTable>> lexemes;

  std::vector<grammar::automaton::Slice> string_chars;  // largest first
};

}  // namespace sluice
