// Maps between pieces and ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/integer_cast.h"

namespace sluice::text {

class Vocabulary {
 public:
  // Ids index arrays, so a damaged file must not name a huge one; four times the largest known vocabulary.
  static constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;

  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  // Throws if the id is out of range, or if the id or the piece is taken.
  void add(std::string_view piece, std::int64_t id);

  std::optional<std::int32_t> find(std::string_view piece) const;
  // Empty for an id without a piece.
  std::string_view piece(std::int32_t id) const;
  // One past the largest id.
  std::int32_t size() const { return to_int(pieces_.size()); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
  std::vector<std::string_view> pieces_;  // by id, into the keys of ids_; null data if there is none
};

}  // namespace sluice::text
