#include "grammar/regex/arena.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::grammar::regex {

Arena::Arena(std::size_t max_terms) : max_terms_(max_terms), known_(64, Hash{this}, Equal{this}) {
  intern({.kind = Kind::nothing});
  intern({.kind = Kind::empty, .nullable = true});
  intern({.kind = Kind::complement, .nullable = true, .searched = false, .a = kNothing});
}

Arena::Arena(const Arena& other)
    : max_terms_(other.max_terms_),
      nodes_(other.nodes_),
      lists_(other.lists_),
      sets_(other.sets_),
      multiples_(other.multiples_),
      known_(2 * other.nodes_.size() + 64, Hash{this}, Equal{this}) {
  for (Id id = 0; id < nodes_.size(); ++id) known_.insert(id);
}

std::size_t Arena::hash(Id id) const {
  const Node& node = nodes_[id];
  std::uint64_t h = static_cast<std::uint64_t>(node.kind) * 0x9E3779B97F4A7C15u;
  const auto mix = [&h](std::uint64_t value) {
    h = (h ^ value) * 0xFF51AFD7ED558CCDu;
    h ^= h >> 32;
  };
  switch (node.kind) {
    case Kind::bytes:
      for (const std::uint64_t word : sets_[node.a].words) mix(word);
      break;
    case Kind::any_of:
    case Kind::all_of:
      for (const Id member : members(node)) mix(member);
      break;
    case Kind::multiple: {
      const MultipleOf& m = multiples_[node.a];
      mix(m.divisor);
      mix(m.places);
      mix(static_cast<std::uint64_t>(m.fraction_digits));
      mix(m.remainder);
      break;
    }
    default:
      mix(node.a);
      mix(node.b);
      mix(node.c);
  }
  return h;
}

bool Arena::equal(Id a, Id b) const {
  const Node &x = nodes_[a], &y = nodes_[b];
  if (x.kind != y.kind) return false;
  switch (x.kind) {
    case Kind::bytes:
      return sets_[x.a] == sets_[y.a];
    case Kind::any_of:
    case Kind::all_of:
      return std::ranges::equal(members(x), members(y));
    case Kind::multiple:
      return multiples_[x.a] == multiples_[y.a];
    default:
      return x.a == y.a && x.b == y.b && x.c == y.c;
  }
}

Id Arena::intern(Node node) {
  if (nodes_.size() >= max_terms_)
    fail(ErrorKind::resource, "the grammar needs more than {} regular expression terms", max_terms_);
  poll();
  const Id id = nodes_.size();
  node.shortest = shortest(node);
  nodes_.push_back(node);
  const auto [found, added] = known_.insert(id);
  if (added) return id;
  nodes_.pop_back();
  if (node.kind == Kind::bytes) sets_.pop_back();
  if (node.kind == Kind::multiple) multiples_.pop_back();
  if (node.kind == Kind::any_of || node.kind == Kind::all_of) lists_.resize(node.a);
  return *found;
}

std::uint32_t Arena::shortest(const Node& node) const {
  constexpr std::uint64_t kMost = 1'000'000;
  std::uint64_t length = 0;
  switch (node.kind) {
    case Kind::bytes:
      return 1;
    case Kind::concat:
      length = std::uint64_t{nodes_[node.a].shortest} + nodes_[node.b].shortest;
      break;
    case Kind::repeat:
      length = std::uint64_t{node.b} * nodes_[node.a].shortest;
      break;
    case Kind::any_of:
      length = kMost;
      for (const Id member : members(node)) length = std::min<std::uint64_t>(length, nodes_[member].shortest);
      break;
    case Kind::all_of:
      for (const Id member : members(node)) length = std::max<std::uint64_t>(length, nodes_[member].shortest);
      break;
    default:
      break;
  }
  return std::min(length, kMost);
}

Id Arena::intern_list(Kind kind, std::span<const Id> list) {
  Node node{.kind = kind, .nullable = kind == Kind::all_of, .searched = kind == Kind::all_of};
  node.a = lists_.size();
  node.b = list.size();
  for (const Id member : list) {
    if (kind == Kind::any_of) node.nullable |= nullable(member);
    if (kind == Kind::all_of) node.nullable &= nullable(member);
    node.searched |= may_be_void(member);
  }
  lists_.insert(lists_.end(), list.begin(), list.end());
  return intern(node);
}

Id Arena::bytes(const ByteSet& set) {
  if (set.empty()) return kNothing;
  sets_.push_back(set);
  return intern({.kind = Kind::bytes, .a = static_cast<std::uint32_t>(sets_.size() - 1)});
}

Id Arena::byte(unsigned char value) {
  ByteSet set;
  set.add(value);
  return bytes(set);
}

Id Arena::literal(std::string_view text) {
  Id id = kEmpty;
  for (std::size_t i = text.size(); i-- > 0;) id = concat(byte(text[i]), id);
  return id;
}

Id Arena::literals(std::vector<std::string> texts) {
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return literal_tree(texts, 0);
}

Id Arena::literal_tree(std::span<const std::string> sorted, std::size_t at) {
  if (sorted.size() == 1) return literal(std::string_view(sorted[0]).substr(at));
  if (!sorted.empty()) {  // a common prefix needs no branches
    const std::string_view first(sorted.front()), last(sorted.back());
    std::size_t common = at;
    while (common < first.size() && common < last.size() && first[common] == last[common]) ++common;
    if (common > at) return concat(literal(first.substr(at, common - at)), literal_tree(sorted, common));
  }
  std::vector<Id> choices;
  std::size_t begin = 0;
  if (!sorted.empty() && sorted[0].size() == at) {
    choices.push_back(kEmpty);
    begin = 1;
  }
  while (begin < sorted.size()) {
    std::size_t end = begin + 1;
    while (end < sorted.size() && sorted[end][at] == sorted[begin][at]) ++end;
    const Id tail = literal_tree(sorted.subspan(begin, end - begin), at + 1);
    choices.push_back(concat(byte(sorted[begin][at]), tail));
    begin = end;
  }
  return any_of(std::move(choices));
}

Id Arena::concat(Id head, Id tail) {
  if (head == kNothing || tail == kNothing) return kNothing;
  if (head == kEmpty) return tail;
  if (tail == kEmpty) return head;
  if (kind(head) == Kind::concat) return concat(first(head), concat(second(head), tail));
  return intern({.kind = Kind::concat,
                 .nullable = nullable(head) && nullable(tail),
                 .searched = may_be_void(head) || may_be_void(tail),
                 .a = head,
                 .b = tail});
}

Id Arena::sequence(std::initializer_list<Id> parts) {
  Id id = kEmpty;
  for (auto part = std::rbegin(parts); part != std::rend(parts); ++part) id = concat(*part, id);
  return id;
}

// Choices that start with bytes and continue alike are merged: x T | y T is [xy] T.
void Arena::join_heads(std::vector<Id>& choices) {
  const auto split = [this](Id id, Id& head, Id& tail) {
    if (kind(id) == Kind::bytes) {
      head = id;
      tail = kEmpty;
      return true;
    }
    if (kind(id) != Kind::concat || kind(first(id)) != Kind::bytes) return false;
    head = first(id);
    tail = second(id);
    return true;
  };
  std::vector<std::pair<Id, Id>> by_tail;  // tail, head
  std::vector<Id> others;
  for (const Id choice : choices) {
    Id head{};
    Id tail{};
    if (split(choice, head, tail)) {
      by_tail.emplace_back(tail, head);
    } else {
      others.push_back(choice);
    }
  }
  if (by_tail.size() < 2) return;
  std::ranges::sort(by_tail);
  for (std::size_t i = 0; i < by_tail.size();) {
    ByteSet set;
    const Id tail = by_tail[i].first;
    for (; i < by_tail.size() && by_tail[i].first == tail; ++i) set |= sets_[nodes_[by_tail[i].second].a];
    others.push_back(concat(bytes(set), tail));
  }
  choices = std::move(others);
}

Id Arena::any_of(std::vector<Id> choices) {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == kEverything) return kEverything;
    if (kind(choices[i]) != Kind::any_of) continue;
    const Node node = nodes_[choices[i]];
    choices[i] = kNothing;
    for (std::uint32_t j = 0; j < node.b; ++j) choices.push_back(lists_[node.a + j]);
  }
  std::erase(choices, kNothing);
  if (choices.size() > 1) join_heads(choices);
  std::ranges::sort(choices);
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  if (choices.empty()) return kNothing;
  if (choices.size() == 1) return choices[0];
  return intern_list(Kind::any_of, choices);
}

Id Arena::all_of(std::vector<Id> conditions) {
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions[i] == kNothing) return kNothing;
    if (kind(conditions[i]) != Kind::all_of) continue;
    const Node node = nodes_[conditions[i]];
    conditions[i] = kEverything;
    for (std::uint32_t j = 0; j < node.b; ++j) conditions.push_back(lists_[node.a + j]);
  }
  std::erase(conditions, kEverything);
  std::ranges::sort(conditions);
  conditions.erase(std::unique(conditions.begin(), conditions.end()), conditions.end());
  if (conditions.empty()) return kEverything;
  if (conditions.size() == 1) return conditions[0];
  if (conditions[0] == kEmpty)
    return std::ranges::all_of(conditions, [this](Id id) { return nullable(id); }) ? kEmpty : kNothing;
  for (const Id id : conditions)  // a term that is both required and excluded
    if (kind(id) == Kind::complement && std::ranges::binary_search(conditions, first(id))) return kNothing;
  return intern_list(Kind::all_of, conditions);
}

Id Arena::complement(Id inner) {
  if (kind(inner) == Kind::complement) return first(inner);
  return intern(
      {.kind = Kind::complement, .nullable = !nullable(inner), .searched = inner != kNothing, .a = inner});
}

Id Arena::repeat(Id inner, std::uint32_t min, std::uint32_t max) {
  if (min > max) return kNothing;
  if (inner == kNothing) return min == 0 ? kEmpty : kNothing;
  if (inner == kEmpty || max == 0) return kEmpty;
  if (nullable(inner)) min = 0;
  if (min == 1 && max == 1) return inner;
  if (kind(inner) == Kind::repeat && repeat_min(inner) == 0 && repeat_max(inner) == kNoLimit) return inner;
  return intern({.kind = Kind::repeat,
                 .nullable = min == 0,
                 .searched = may_be_void(inner),
                 .a = inner,
                 .b = min,
                 .c = max});
}

Id Arena::multiple_of(const MultipleOf& digits) {
  bool whole = true;
  if (digits.fraction_digits < 0) {
    std::uint64_t rest = digits.remainder;
    for (std::uint32_t i = 0; i < digits.places; ++i) rest = rest * 10 % digits.divisor;
    whole = rest == 0;
  } else {
    std::uint64_t rest = digits.remainder;
    for (std::uint32_t i = digits.fraction_digits; i < digits.places; ++i) rest = rest * 10 % digits.divisor;
    whole = rest == 0;
  }
  multiples_.push_back(digits);
  return intern({.kind = Kind::multiple,
                 .nullable = whole,
                 .searched = true,
                 .a = static_cast<std::uint32_t>(multiples_.size() - 1)});
}

Id Arena::derive_multiple(Id id, unsigned char byte) {
  MultipleOf m = multiples_[nodes_[id].a];
  if (byte == '.' && m.fraction_digits < 0) {
    m.fraction_digits = 0;
    return multiple_of(m);
  }
  if (byte < '0' || byte > '9') return kNothing;
  if (m.fraction_digits == static_cast<std::int32_t>(m.places)) return byte == '0' ? id : kNothing;
  m.remainder = (m.remainder * 10 + (byte - '0')) % m.divisor;
  if (m.fraction_digits >= 0) ++m.fraction_digits;
  return multiple_of(m);
}

Id Arena::derive_list(Id id, unsigned char byte) {
  const Node node = nodes_[id];
  std::vector<Id> derived;
  derived.reserve(node.b);
  for (std::uint32_t i = 0; i < node.b; ++i) {
    const Id member = derivative(lists_[node.a + i], byte);
    if (member == kNothing) {
      if (node.kind == Kind::all_of) return kNothing;
      continue;
    }
    derived.push_back(member);
  }
  return node.kind == Kind::any_of ? any_of(std::move(derived)) : all_of(std::move(derived));
}

Id Arena::derivative(Id id, unsigned char byte) {
  const Node& node = nodes_[id];
  const bool at_once = node.kind == Kind::bytes || node.kind == Kind::empty || node.kind == Kind::nothing ||
                       (node.kind == Kind::concat && kind(node.a) == Kind::bytes);
  if (at_once) return derive(id, byte);
  const std::uint64_t key = std::uint64_t{id} << 8 | byte;
  const Id known = derivatives_.find(key);
  if (known != FlatMap::kAbsent) return known;
  const Id made = derive(id, byte);
  derivatives_.insert(key, made);
  return made;
}

Id Arena::derive(Id id, unsigned char byte) {
  poll();
  const Node node = nodes_[id];
  switch (node.kind) {
    case Kind::nothing:
    case Kind::empty:
      return kNothing;
    case Kind::bytes:
      return sets_[node.a].contains(byte) ? kEmpty : kNothing;
    case Kind::concat: {
      const Id through = concat(derivative(node.a, byte), node.b);
      if (!nullable(node.a)) return through;
      return any_of({through, derivative(node.b, byte)});
    }
    case Kind::any_of:
    case Kind::all_of:
      return derive_list(id, byte);
    case Kind::complement:
      return complement(derivative(node.a, byte));
    case Kind::repeat: {
      const Id inner = derivative(node.a, byte);
      if (inner == kNothing) return kNothing;
      return concat(inner,
                    repeat(node.a, node.b == 0 ? 0 : node.b - 1, node.c == kNoLimit ? kNoLimit : node.c - 1));
    }
    case Kind::multiple:
      return derive_multiple(id, byte);
  }
  return kNothing;
}

bool Arena::guess_word(Id id, std::size_t limit, std::string& word) const {
  const Node& node = nodes_[id];
  const auto shorter = [this](Id a, Id b) { return nodes_[a].shortest < nodes_[b].shortest; };
  if (word.size() + node.shortest > limit) return false;
  switch (node.kind) {
    case Kind::empty:
      return true;
    case Kind::bytes:
      word += static_cast<char>(sets_[node.a].first());
      return true;
    case Kind::concat:
      return guess_word(node.a, limit, word) && guess_word(node.b, limit, word);
    case Kind::any_of:
      return guess_word(*std::ranges::min_element(members(node), shorter), limit, word);
    case Kind::all_of:
      // The longest word is the likeliest to satisfy the other conditions too.
      return guess_word(*std::ranges::max_element(members(node), shorter), limit, word);
    case Kind::repeat:
      for (std::uint32_t i = 0; i < node.b; ++i)
        if (!guess_word(node.a, limit, word)) return false;
      return true;
    case Kind::nothing:
    case Kind::multiple:
      return false;
    case Kind::complement:
      return node.nullable;
  }
  return false;
}

std::uint64_t Arena::effort(Id id) const {
  const Node& node = nodes_[id];
  if (node.kind == Kind::concat) return effort(node.a) + nodes_[node.b].shortest;
  if (node.kind != Kind::all_of) return node.shortest;
  std::uint64_t sum = 0;
  for (const Id member : members(node)) sum += nodes_[member].shortest;
  return sum;
}

void Arena::first_sets(Id id, std::vector<ByteSet>& sets) const {
  poll();
  const Node& node = nodes_[id];
  switch (node.kind) {
    case Kind::nothing:
    case Kind::empty:
      return;
    case Kind::bytes:
      if (std::ranges::find(sets, sets_[node.a]) == sets.end()) sets.push_back(sets_[node.a]);
      return;
    case Kind::concat:
      first_sets(node.a, sets);
      if (nullable(node.a)) first_sets(node.b, sets);
      return;
    case Kind::any_of:
    case Kind::all_of:
      for (const Id member : members(node)) first_sets(member, sets);
      return;
    case Kind::complement:
    case Kind::repeat:
      return first_sets(node.a, sets);
    case Kind::multiple:
      for (unsigned byte = '0'; byte <= '9'; ++byte) sets.push_back(ByteSet::range(byte, byte));
      sets.push_back(ByteSet::range('.', '.'));
  }
}

void Arena::describe(Id id, std::size_t limit, std::string& out) const {
  if (out.size() > limit) return;
  const Node& node = nodes_[id];
  out += static_cast<char>('a' + static_cast<int>(node.kind));
  switch (node.kind) {
    case Kind::nothing:
    case Kind::empty:
      return;
    case Kind::bytes:
      out.append(reinterpret_cast<const char*>(sets_[node.a].words.data()), sizeof(ByteSet));
      return;
    case Kind::concat:
      describe(node.a, limit, out);
      return describe(node.b, limit, out);
    case Kind::any_of:
    case Kind::all_of: {
      // Members are ordered by ids, which differ between arenas.
      std::vector<std::string> texts;
      std::size_t size = out.size();
      for (const Id member : members(node)) {
        texts.emplace_back();
        describe(member, limit, texts.back());
        size += texts.back().size();
        if (size > limit) break;  // shared terms would be described over and over
      }
      std::ranges::sort(texts);
      out += fmt::format("{}:", texts.size());
      for (const std::string& text : texts) out += text;
      return;
    }
    case Kind::complement:
      return describe(node.a, limit, out);
    case Kind::repeat:
      out += fmt::format("{},{}:", node.b, node.c);
      return describe(node.a, limit, out);
    case Kind::multiple: {
      const MultipleOf& m = multiples_[node.a];
      out += fmt::format("{},{},{},{}:", m.divisor, m.places, m.fraction_digits, m.remainder);
    }
  }
}

std::string Arena::describe(Id id, std::size_t limit) const {
  std::string out;
  describe(id, limit, out);
  if (out.size() > limit) out.clear();
  return out;
}

}  // namespace sluice::grammar::regex
