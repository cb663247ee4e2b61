#include "jinja/repr.h"

#include <charconv>
#include <cmath>

#include "jinja/unicode.h"

namespace sluice::jinja {
namespace {

class ReprWriter {
 public:
  explicit ReprWriter(Budget& budget) : budget_(budget) {}

  void write(const Value& value) {
    DepthGuard guard(budget_);
    budget_.step();
    switch (value.type()) {
      case Type::undefined:
        return add("Undefined");
      case Type::none:
        return add("None");
      case Type::boolean:
        return add(value.boolean() ? "True" : "False");
      case Type::integer:
        return add(std::to_string(value.integer()));
      case Type::big_integer:
        return add(*value.big_integer().digits);
      case Type::real:
        return add(repr(value.real()));
      case Type::text:
        return add(value.is_markup() ? "Markup(" + repr(value.text()) + ")" : repr(value.text()));
      case Type::sequence:
        return write(value.sequence());
      case Type::dict:
        return write(value.dict());
      case Type::object:
        return add(value.object()->repr(budget_));
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void add(std::string_view text) {
    out_ += text;
    if (out_.size() > budget_.limits().output_bytes) budget_.grow(out_.size());
  }

  void items(const Sequence& sequence) {
    for (std::size_t i = 0; i < sequence.items.size(); ++i) {
      if (i > 0) add(", ");
      write(sequence.items[i]);
    }
  }

  void write(const Sequence& sequence) {
    constexpr const char* kOpen[] = {"[", "(", "", "dict_keys([", "dict_values([", "dict_items(["};
    constexpr const char* kClose[] = {"]", ")", "", "])", "])", "])"};
    if (sequence.kind == SequenceKind::iterator) return add("<generator object>");
    if (sequence.kind == SequenceKind::range) return add(sequence.label);
    int kind = static_cast<int>(sequence.kind);
    add(kOpen[kind]);
    items(sequence);
    if (sequence.kind == SequenceKind::tuple && sequence.items.size() == 1) add(",");
    add(kClose[kind]);
  }

  void write(const Dict& dict) {
    add("{");
    bool first = true;
    for (const auto& [key, value] : dict.entries()) {
      if (!first) add(", ");
      first = false;
      write(key);
      add(": ");
      write(value);
    }
    add("}");
  }

  Budget& budget_;
  std::string out_;
};

}  // namespace

std::string str(Budget& budget, const Value& value) {
  if (value.is_text()) return value.text();
  if (value.is_undefined()) return "";
  return repr(budget, value);
}

std::string repr(Budget& budget, const Value& value) {
  ReprWriter writer(budget);
  writer.write(value);
  return writer.take();
}

std::string repr(std::string_view text) {
  bool single = text.find('\'') == text.npos || text.find('"') != text.npos;
  char quote = single ? '\'' : '"';
  std::string out(1, quote);
  for (std::size_t i = 0; i < text.size();) {
    std::size_t start = i;
    char32_t c = next_code_point(text, i);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (is_printable(c)) {
      out += text.substr(start, i - start);
    } else {
      unsigned code = c;
      out += c < 0x100     ? fmt::format("\\x{:02x}", code)
             : c < 0x10000 ? fmt::format("\\u{:04x}", code)
                           : fmt::format("\\U{:08x}", code);
    }
  }
  return out + quote;
}

// The shortest digits that read back equal, formatted as in Python: exponents outside -4..15.
std::string repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  std::string_view scientific(buffer, end - buffer);
  std::size_t e = scientific.find('e');
  int exponent = std::stoi(std::string(scientific.substr(e + 1)));
  if (exponent < -4 || exponent >= 16) return std::string(scientific);
  end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed).ptr;
  std::string fixed(buffer, end - buffer);
  return fixed.find('.') == fixed.npos ? fixed + ".0" : fixed;
}

}  // namespace sluice::jinja
