#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/integer_cast.h"
#include "text/byte_level.h"

namespace sluice::text {
namespace {

constexpr std::string_view kInModel = "tokenizer.json: model";

// The two pieces of a merge, given as "a b" or as ["a", "b"].
std::pair<std::string_view, std::string_view> parse_merge(const Json& merge, std::size_t rank) {
  if (merge.is_string()) {
    const std::string_view text = merge.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space != text.npos && space != 0 && space + 1 < text.size() && text.find(' ', space + 1) == text.npos)
      return {text.substr(0, space), text.substr(space + 1)};
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    const std::string_view left = merge[0].get_ref<const std::string&>();
    const std::string_view right = merge[1].get_ref<const std::string&>();
    if (!left.empty() && !right.empty()) return {left, right};
  }
  fail(ErrorKind::checkpoint, "{}: merge {} is {}, expected \"a b\" or [\"a\", \"b\"]", kInModel, rank,
       quote(merge.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

void refuse_what_is_not_byte_level(const Json& model) {
  const auto type = json_get_or<std::string>(model, "type", "BPE", kInModel);
  if (type != "BPE")
    fail(ErrorKind::unsupported, "{}: the type {} is not supported, only BPE is", kInModel, quote(type));
  for (const char* key : {"unk_token", "continuing_subword_prefix", "end_of_word_suffix"})
    if (!json_get_or<std::string>(model, key, "", kInModel).empty())
      fail(ErrorKind::unsupported, "{}: '{}' is not supported, it must be null", kInModel, key);
  if (json_get_or<double>(model, "dropout", 0, kInModel) != 0)
    fail(ErrorKind::unsupported, "{}: 'dropout' is not supported, it must be null or 0", kInModel);
  if (json_get_or<bool>(model, "byte_fallback", false, kInModel))
    fail(ErrorKind::unsupported, "{}: 'byte_fallback' is not supported, it must be false", kInModel);
}

const Json& member(const Json& model, std::string_view key, Json::value_t type, std::string_view type_name) {
  const Json* value = json_find(model, key, kInModel);
  if (value == nullptr || value->type() != type)
    fail(ErrorKind::checkpoint, "{}: '{}' is {}, expected an {}", kInModel, key,
         value == nullptr ? "missing" : value->type_name(), type_name);
  return *value;
}

}  // namespace

MergeTable::MergeTable(std::size_t count) : slots_(std::bit_ceil(2 * count + 2), Slot{kFree, {}}) {
  shift_ = 64 - std::countr_zero(slots_.size());
}

void MergeTable::insert(std::int32_t left, std::int32_t right, Merge merge) {
  const std::uint64_t key = key_of(left, right);
  slots_[slot_of(key)] = {key, merge};
}

WordCache::WordCache(std::size_t text_bytes)
    : entries_(std::bit_ceil(std::clamp<std::size_t>(text_bytes / 16, 16, 16384))) {}

WordCache::Key WordCache::key_of(std::string_view word) {
  std::array<char, 16> bytes = {};
  std::memcpy(bytes.data(), word.data(), word.size());
  bytes[kMaxBytes] = word.size();
  return std::bit_cast<Key>(bytes);
}

WordCache::Entry& WordCache::entry_of(const Key& key) {
  const std::uint64_t mixed = (key.low ^ std::rotl(key.high, 29)) * kSpread;
  return entries_[(mixed ^ mixed >> 32) & (entries_.size() - 1)];
}

Bpe::Bpe(const Json& model, const Vocabulary& vocabulary) {
  refuse_what_is_not_byte_level(model);
  ignore_merges_ = json_get_or<bool>(model, "ignore_merges", false, kInModel);
  for (int byte = 0; byte < 256; ++byte) {
    const std::string& character = ByteLevel::instance().character(byte);
    byte_ids_[byte] = vocabulary.find(character).value_or(-1);
  }
  const Json& merges = member(model, "merges", Json::value_t::array, "array");
  merges_ = MergeTable(merges.size());
  std::string joined;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    if (merges[rank].is_string() && merges[rank].get_ref<const std::string&>().starts_with("#version"))
      continue;
    const auto [left, right] = parse_merge(merges[rank], rank);
    joined.assign(left).append(right);
    const auto id_of = [&, rank = rank](std::string_view piece) {
      const auto id = vocabulary.find(piece);
      if (!id)
        fail(ErrorKind::checkpoint, "{}: merge {} names {}, which is not in the vocabulary", kInModel, rank,
             quote(piece));
      return *id;
    };
    const std::int32_t left_id = id_of(left), right_id = id_of(right);
    merges_.insert(left_id, right_id, {static_cast<std::uint32_t>(rank), id_of(joined)});
  }
}

void Bpe::encode(std::string_view word, const Vocabulary& vocabulary, Workspace& work,
                 std::vector<std::int32_t>& ids) const {
  if (word.empty()) return;
  if (word.size() == 1 && byte_ids_[static_cast<unsigned char>(word[0])] >= 0) {
    ids.push_back(byte_ids_[static_cast<unsigned char>(word[0])]);
    return;
  }
  const bool cacheable = word.size() <= WordCache::kMaxBytes;
  WordCache::Key key;
  WordCache::Entry* entry = nullptr;
  if (cacheable) {
    key = WordCache::key_of(word);
    entry = &work.cache.entry_of(key);
    if (entry->key == key) {
      ids.insert(ids.end(), entry->ids.begin(), entry->ids.begin() + entry->count);
      return;
    }
  }
  const std::size_t before = ids.size();
  const auto whole = ignore_merges_ ? vocabulary.find(ByteLevel::instance().piece(word)) : std::nullopt;
  if (whole)
    ids.push_back(*whole);
  else
    merge(word, work, ids);
  const std::size_t count = ids.size() - before;
  if (cacheable && count <= WordCache::kMaxIds) {
    entry->key = key;
    entry->count = to_int(count);
    std::copy(ids.end() - entry->count, ids.end(), entry->ids.begin());
  }
}

void Bpe::queue_pair(std::int32_t position, Workspace& work) const {
  const auto& symbol = work.symbols[position];
  if (symbol.next < 0) return;
  if (const auto* merge = merges_.find(symbol.id, work.symbols[symbol.next].id)) {
    work.queue.push_back(static_cast<std::uint64_t>(merge->rank) << 32 | to_unsigned(position));
    std::push_heap(work.queue.begin(), work.queue.end(), std::greater<>());
  }
}

void Bpe::merge(std::string_view word, Workspace& work, std::vector<std::int32_t>& ids) const {
  auto& symbols = work.symbols;
  symbols.clear();
  for (const char byte : word) {
    const std::int32_t id = byte_ids_[static_cast<unsigned char>(byte)];
    if (id < 0) continue;
    const auto at = to_int(symbols.size());
    symbols.push_back({id, at - 1, at + 1});
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;
  work.queue.clear();
  for (std::size_t at = 0; at < symbols.size(); ++at) queue_pair(to_int(at), work);

  while (!work.queue.empty()) {
    std::pop_heap(work.queue.begin(), work.queue.end(), std::greater<>());
    const std::uint64_t top = work.queue.back();
    work.queue.pop_back();
    const std::int32_t position = top & 0xffffffff;
    auto& left = symbols[position];
    if (left.id < 0 || left.next < 0) continue;
    auto& right = symbols[left.next];
    // The pair may have changed since it was queued; then its new entry is in the queue, too.
    const auto* merge = merges_.find(left.id, right.id);
    if (merge == nullptr || merge->rank != top >> 32) continue;
    left.id = merge->id;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) symbols[left.next].previous = position;
    if (left.previous >= 0) queue_pair(left.previous, work);
    queue_pair(position, work);
  }
  for (const auto& symbol : symbols)
    if (symbol.id >= 0) ids.push_back(symbol.id);
}

void read_vocabulary(const Json& model, Vocabulary& vocabulary) {
  const Json& vocab = member(model, "vocab", Json::value_t::object, "object");
  for (const auto& [piece, id] : vocab.items()) {
    if (!id.is_number_integer())
      fail(ErrorKind::checkpoint, "{}: the id of {} is {}, expected an integer", kInModel, quote(piece),
           id.type_name());
    const bool huge = id.is_number_unsigned() && id.get<std::uint64_t>() >= std::uint64_t{1} << 62;
    vocabulary.add(piece, huge ? Vocabulary::kMaxSize : id.get<std::int64_t>());
  }
}

}  // namespace sluice::text
