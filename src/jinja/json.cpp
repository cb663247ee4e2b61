#include "jinja/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_builder.h"
#include "jinja/operators.h"
#include "jinja/repr.h"
#include "jinja/unicode.h"

namespace sluice::jinja {
namespace {

Value convert(const nlohmann::ordered_json& json, int nesting) {
  using Kind = nlohmann::ordered_json::value_t;
  if (nesting > kMaxNesting) fault("the JSON nests deeper than {} levels", kMaxNesting);
  switch (json.type()) {
    case Kind::boolean:
      return json.get<bool>();
    case Kind::number_integer:
      return json.get<std::int64_t>();
    case Kind::number_unsigned:
      return make_integer(std::to_string(json.get<std::uint64_t>()));
    case Kind::binary:  // of parse_document
      return make_integer(std::string_view(reinterpret_cast<const char*>(json.get_binary().data()),
                                           json.get_binary().size()));
    case Kind::number_float:
      return json.get<double>();
    case Kind::string:
      return Value(json.get_ref<const std::string&>());
    case Kind::array: {
      Values items;
      for (const auto& item : json) items.push_back(convert(item, nesting + 1));
      return make_list(std::move(items));
    }
    case Kind::object: {
      Dict dict;
      for (const auto& [key, value] : json.items()) dict.set(Value(key), convert(value, nesting + 1));
      return make_dict(std::move(dict));
    }
    default:
      return {};
  }
}

// nlohmann-json's own builder converts integers beyond 64 bits to doubles.
class DocumentBuilder : public JsonBuilder<nlohmann::ordered_json> {
 public:
  using Json = nlohmann::ordered_json;

  DocumentBuilder() : JsonBuilder(kMaxNesting) {}

  bool number_float(double value, const std::string& text) override {
    if (text.find_first_of(".eE") != std::string::npos) return add(value);
    return add(Json::binary({text.begin(), text.end()}));
  }
  bool key(std::string& name) override { return expect_value(innermost()[name]); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 protected:
  bool too_deep() override { return false; }
};

class JsonWriter {
 public:
  JsonWriter(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style) {}

  void write(const Value& value) {
    budget_.step();
    switch (value.type()) {
      case Type::none:
        return add("null");
      case Type::boolean:
        return add(value.boolean() ? "true" : "false");
      case Type::integer:
        return add(std::to_string(value.integer()));
      case Type::big_integer:
        return add(*value.big_integer().digits);
      case Type::real:
        return add(number(value.real()));
      case Type::text:
        return string(value.text());
      case Type::dict:
        return object(value.dict());
      case Type::sequence:
        if (is_list(value) || is_tuple(value)) return array(value.sequence().items);
        break;
      default:
        break;
    }
    fault("Object of type {} is not JSON serializable", type_name(value));
  }

  std::string take() { return std::move(out_); }

 private:
  void add(std::string_view text) {
    out_ += text;
    if (out_.size() > budget_.limits().output_bytes) budget_.grow(out_.size());
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return repr(value);
  }

  void new_line() {
    if (!style_.indent) return;
    add("\n");
    for (int i = 0; i < level_; ++i) add(*style_.indent);
  }

  void open(const char* bracket) {
    add(bracket);
    ++level_;
    new_line();
  }

  void close(const char* bracket) {
    --level_;
    new_line();
    add(bracket);
  }

  void array(const Values& items) {
    if (items.empty()) return add("[]");
    open("[");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) add(style_.item_separator), new_line();
      write(items[i]);
    }
    close("]");
  }

  std::string key_text(const Value& key) {
    if (key.is_text()) return key.text();
    if (key.is_none()) return "null";
    if (key.is_boolean()) return key.boolean() ? "true" : "false";
    if (key.is_integer()) return std::to_string(key.integer());
    if (key.is_big_integer()) return *key.big_integer().digits;
    if (key.is_real()) return number(key.real());
    fault("keys must be str, int, float, bool or None, not {}", type_name(key));
  }

  void object(const Dict& dict) {
    if (dict.size() == 0) return add("{}");
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const auto* a, const auto* b) { return less(budget_, a->first, b->first); });
    }
    open("{");
    bool first = true;
    for (const auto* entry : entries) {
      if (!std::exchange(first, false)) add(style_.item_separator), new_line();
      string(key_text(entry->first));
      add(style_.key_separator);
      write(entry->second);
    }
    close("}");
  }

  void string(std::string_view text) {
    constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b", kNames = "\"\\nrtfb";
    std::string quoted = "\"";
    for (std::size_t i = 0; i < text.size();) {
      std::size_t start = i;
      char32_t c = next_code_point(text, i);
      std::size_t named = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : kEscaped.npos;
      if (named != kEscaped.npos)
        quoted += {'\\', kNames[named]};
      else if (c < 0x20 || (style_.ascii && c > 0x7E))
        escape_code_point(quoted, c);
      else
        quoted += text.substr(start, i - start);
    }
    add(quoted + "\"");
  }

  static void escape_code_point(std::string& out, char32_t c) {
    unsigned code = c;
    if (c < 0x10000)
      out += fmt::format("\\u{:04x}", code);
    else
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                         0xDC00 + ((code - 0x10000) & 0x3FF));
  }

  Budget& budget_;
  const JsonStyle& style_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

nlohmann::ordered_json parse_document(std::string_view text) {
  DocumentBuilder builder;
  if (!nlohmann::ordered_json::sax_parse(text.begin(), text.end(), &builder)) fault("this is no JSON");
  return builder.take();
}

Value from_json(const nlohmann::ordered_json& json) {
  return convert(json, 1);
}

std::string to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  JsonWriter writer(budget, style);
  writer.write(value);
  return writer.take();
}

}  // namespace sluice::jinja
