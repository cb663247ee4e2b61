// Python's pprint.pformat with its defaults: 80 columns, sorted keys.
#include <algorithm>

#include "base/integer_cast.h"
#include "jinja/builtins/builtins.h"
#include "jinja/builtins/parameters.h"
#include "jinja/operators.h"
#include "jinja/repr.h"
#include "jinja/unicode.h"

namespace sluice::jinja::builtins {
namespace {

using Entries = std::vector<std::pair<Value, Value>>;

// Keys that cannot be compared are sorted by type.
Entries in_order(Budget& budget, const Dict& dict) {
  Entries entries = dict.entries();
  std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
    budget.step();
    try {
      return less(budget, a.first, b.first);
    } catch (const Fault&) {
      return type_name(a.first) < type_name(b.first);
    }
  });
  return entries;
}

std::ptrdiff_t columns(std::string_view text) {
  return count_code_points(text);
}

// As re.findall(r'\S*\s*', line), without the empty match at the end.
std::vector<std::string_view> words_with_blanks(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;
  bool blank = false;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t here = at;
    const bool space = is_space(next_code_point(line, at));
    if (blank && !space) {
      words.push_back(line.substr(begin, here - begin));
      begin = here;
    }
    blank = space;
  }
  if (begin < line.size()) words.push_back(line.substr(begin));
  return words;
}

class PrettyPrinter {
 public:
  explicit PrettyPrinter(Budget& budget) : budget_(budget) {}

  // `indent` is the column where it begins, `allowance` the columns needed after it on its last line.
  void format(const Value& value, std::ptrdiff_t indent, std::ptrdiff_t allowance, int level) {
    DepthGuard guard(budget_);
    const std::string line = flat(value);
    if (columns(line) <= kWidth - indent - allowance) return add(line);
    if (value.is_dict()) return format_dict(value.dict(), indent, allowance, level + 1);
    if (is_list(value)) return format_items(value.sequence(), {"[", "]"}, indent, allowance, level + 1);
    if (is_tuple(value)) {
      const bool one = value.sequence().items.size() == 1;
      return format_items(value.sequence(), {"(", one ? ",)" : ")"}, indent, allowance, level + 1);
    }
    if (value.is_text() && !value.is_markup() && !value.text().empty())
      return format_text(value.text(), line, indent, allowance, level + 1);
    add(line);
  }

  std::string take() { return std::move(out_); }

 private:
  static constexpr std::ptrdiff_t kWidth = 80;

  struct Brackets {
    std::string_view open;
    std::string_view close;
  };

  void add(std::string_view text) {
    out_ += text;
    if (out_.size() > budget_.limits().output_bytes) budget_.grow(out_.size());
  }

  void begin_line(std::ptrdiff_t indent) { add("\n" + std::string(to_size(indent), ' ')); }

  // On one line: repr() with the keys of dicts sorted.
  std::string flat(const Value& value) {
    DepthGuard guard(budget_);
    budget_.step();
    const bool list = is_list(value);
    std::string line;
    if (value.is_dict()) {
      for (const auto& [key, inner] : in_order(budget_, value.dict()))
        line += (line.empty() ? "" : ", ") + flat(key) + ": " + flat(inner);
      line = "{" + line + "}";
    } else if (list || is_tuple(value)) {
      const Values& items = value.sequence().items;
      for (const Value& item : items) line += (line.empty() ? "" : ", ") + flat(item);
      line = list ? "[" + line + "]" : "(" + line + (items.size() == 1 ? ",)" : ")");
    } else {
      return repr(budget_, value);
    }
    budget_.grow(line.size());
    return line;
  }

  void format_dict(const Dict& dict, std::ptrdiff_t indent, std::ptrdiff_t allowance, int level) {
    const Entries entries = in_order(budget_, dict);
    add("{");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const bool last = i + 1 == entries.size();
      const std::string key = flat(entries[i].first);
      if (i > 0) begin_line(indent + 1);
      add(key + ": ");
      format(entries[i].second, indent + 1 + columns(key) + 2, last ? allowance + 1 : 1, level);
      if (!last) add(",");
    }
    add("}");
  }

  void format_items(const Sequence& sequence, Brackets brackets, std::ptrdiff_t indent,
                    std::ptrdiff_t allowance, int level) {
    add(brackets.open);
    for (std::size_t i = 0; i < sequence.items.size(); ++i) {
      const bool last = i + 1 == sequence.items.size();
      if (i > 0) begin_line(indent + 1);
      format(sequence.items[i], indent + 1, last ? allowance + columns(brackets.close) : 1, level);
      if (!last) add(",");
    }
    add(brackets.close);
  }

  // Splits a line of text into pieces of complete words. The last piece leaves `allowance` columns.
  void split_line(std::string_view line, std::ptrdiff_t width, std::ptrdiff_t allowance,
                  std::vector<std::string>& pieces) {
    const std::vector<std::string_view> words = words_with_blanks(line);
    std::string current;
    for (std::size_t i = 0; i < words.size(); ++i) {
      budget_.grow(current.size());
      const std::string longer = current + std::string(words[i]);
      if (columns(repr(longer)) <= width - (i + 1 == words.size() ? allowance : 0)) {
        current = longer;
        continue;
      }
      if (!current.empty()) pieces.push_back(repr(current));
      current = words[i];
    }
    if (!current.empty()) pieces.push_back(repr(current));
  }

  void format_text(const std::string& text, const std::string& whole, std::ptrdiff_t indent,
                   std::ptrdiff_t allowance, int level) {
    const bool outermost = level == 1;
    if (outermost) {
      ++indent;
      ++allowance;
    }
    std::vector<std::string> pieces;
    const std::vector<std::string_view> lines = split_lines(text, true);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::ptrdiff_t behind = i + 1 == lines.size() ? allowance : 0;
      if (std::string piece = repr(lines[i]); columns(piece) <= kWidth - indent - behind)
        pieces.push_back(std::move(piece));
      else
        split_line(lines[i], kWidth - indent, behind, pieces);
    }
    if (pieces.size() == 1) return add(whole);
    if (outermost) add("(");
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) begin_line(indent);
      add(pieces[i]);
    }
    if (outermost) add(")");
  }

  Budget& budget_;
  std::string out_;
};

Value pprint(Runtime& runtime, const Value& value, const Call& call) {
  Parameters none(call, {});
  PrettyPrinter printer(runtime.budget());
  printer.format(value, 0, 0, 0);
  return Value(printer.take());
}

}  // namespace

const Builtins& pretty_print_filters() {
  static const Builtins kFilters = {{"pprint", pprint}};
  return kFilters;
}

}  // namespace sluice::jinja::builtins
