#include "text/vocabulary.h"

#include "base/error.h"
#include "base/integer_cast.h"
#include "base/quote.h"

namespace sluice::text {

void Vocabulary::add(std::string_view piece, std::int64_t id) {
  if (id < 0 || id >= kMaxSize)
    fail(ErrorKind::checkpoint, "tokenizer.json: the token {} has the id {}, ids must be in 0..{}",
         quote(piece), id, kMaxSize - 1);
  const std::size_t slot = id;
  if (slot < pieces_.size() && pieces_[slot].data() != nullptr)
    fail(ErrorKind::checkpoint, "tokenizer.json: the id {} is given to both {} and {}", id,
         quote(pieces_[slot]), quote(piece));
  const auto [entry, added] = ids_.try_emplace(std::string(piece), to_int(id));
  if (!added)
    fail(ErrorKind::checkpoint, "tokenizer.json: the token {} has two ids, {} and {}", quote(piece),
         entry->second, id);
  if (slot >= pieces_.size()) pieces_.resize(slot + 1);
  pieces_[slot] = entry->first;
}

std::optional<std::int32_t> Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::string_view Vocabulary::piece(std::int32_t id) const {
  return id >= 0 && id < size() ? pieces_[id] : std::string_view();
}

}  // namespace sluice::text
