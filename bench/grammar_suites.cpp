// Runs suites of JSON schemas with instances through the grammar: what is accepted, what is refused, and how
// long compiling and each mask take on one core. `tools/check grammar` calls it. Usage: grammar_suites TOKENS
// (maskbench|suite) FOLDER... [--list] [--only=TEXT] [--dialect=URI] [--brute=STEPS]. TOKENS is a
// tokenizer.json, or a file of tokens: their number, then of each its length (bit 31: special) as 32-bit
// little-endian numbers and its bytes. A maskbench file is {"schema", "tests": [{"data", "valid"}]}, a suite
// file an array of
// {"description", "schema", "tests"}.
#include <fmt/core.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sluice/error.h"
#include "sluice/grammar.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorKind::input, path.string() + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Tokens {
  std::vector<std::string> bytes;
  std::vector<std::int32_t> stop;
};

Tokens read_tokens(const std::string& path) {
  Tokens result;
  const std::string data = read_file(path);
  if (path.ends_with(".json")) {
    const text::Tokenizer tokenizer = text::Tokenizer::parse(data);
    for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      if (tokenizer.is_special(id)) result.stop.push_back(id);
      result.bytes.emplace_back(tokenizer.is_special(id) ? "" : tokenizer.bytes(id));
    }
  } else {
    std::size_t at = 4;
    while (at + 4 <= data.size()) {
      std::uint32_t length;
      std::memcpy(&length, data.data() + at, 4);
      const bool special = length >> 31 != 0;
      length &= 0x7FFFFFFF;
      if (special) result.stop.push_back(static_cast<std::int32_t>(result.bytes.size()));
      result.bytes.push_back(special ? "" : data.substr(at + 4, length));
      at += 4 + length;
    }
  }
  result.stop.resize(std::min<std::size_t>(result.stop.size(), 1));
  return result;
}

// The longest token at each place: not what a model would choose, but the same for every engine.
class Greedy {
 public:
  explicit Greedy(const Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.bytes.size(); ++i) {
      if (tokens.bytes[i].empty()) continue;
      ids_.try_emplace(tokens.bytes[i], static_cast<std::int32_t>(i));
      longest_ = std::min<std::size_t>(std::max(longest_, tokens.bytes[i].size()), 32);
    }
  }
  std::vector<std::int32_t> operator()(std::string_view text) const {
    std::vector<std::int32_t> ids;
    while (!text.empty()) {
      std::size_t length = std::min(longest_, text.size());
      auto found = ids_.end();
      for (; length > 0; --length)
        if ((found = ids_.find(std::string(text.substr(0, length)))) != ids_.end()) break;
      if (found == ids_.end()) return ids;
      ids.push_back(found->second);
      text.remove_prefix(length);
    }
    return ids;
  }

 private:
  std::unordered_map<std::string, std::int32_t> ids_;
  std::size_t longest_ = 0;
};

// One blank after commas and colons. With an order of names the text is canonical: properties in that order,
// whole numbers without fraction.
void write(const OrderedJson& value, const std::map<std::string, int>* order, std::string& out) {
  if (value.is_object()) {
    std::vector<std::pair<std::string, const OrderedJson*>> members;
    for (const auto& [key, member] : value.items()) members.emplace_back(key, &member);
    if (order != nullptr) {
      const auto rank = [&](const auto& member) {
        const auto found = order->find(member.first);
        return found == order->end() ? static_cast<int>(order->size()) : found->second;
      };
      std::ranges::stable_sort(members, [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    }
    out += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out += ", ";
      out += OrderedJson(members[i].first).dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + ": ";
      write(*members[i].second, order, out);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += ", ";
      write(value[i], order, out);
    }
    out += ']';
  } else if (order != nullptr && value.is_number_float() && std::isfinite(value.get<double>()) &&
             value.get<double>() == std::trunc(value.get<double>())) {
    out += fmt::format("{:.0f}", value.get<double>());
  } else {
    out += value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }
}

// Whether the grammar accepts the value with the members of its objects in some order; that of the schema is
// tried first. Objects commit to the first order that works for themselves.
class AnyOrder {
 public:
  AnyOrder(const std::shared_ptr<const Grammar>& grammar, const std::map<std::string, int>& order)
      : matcher_(grammar), order_(order) {}

  bool accepts(const OrderedJson& value) { return follow(value) && matcher_.can_stop(); }

 private:
  using Members = std::vector<std::pair<std::string, const OrderedJson*>>;

  bool text(const std::string& part) {
    if (--budget_ < 0) return false;
    const bool whole = matcher_.accept_text(part) == part.size();
    if (!whole) matcher_.rollback(1);
    steps_ += whole ? 1 : 0;
    return whole;
  }
  void back_to(std::size_t steps) {
    matcher_.rollback(steps_ - steps);
    steps_ = steps;
  }
  bool follow(const OrderedJson& value) {
    const std::size_t before = steps_;
    bool good = false;
    if (value.is_object()) {
      Members members;
      for (const auto& [key, member] : value.items()) members.emplace_back(key, &member);
      std::ranges::stable_sort(members, {}, [this](const auto& member) {
        const auto found = order_.find(member.first);
        return found == order_.end() ? static_cast<int>(order_.size()) : found->second;
      });
      good = text("{") && follow_members(members, true);
    } else if (value.is_array()) {
      good = text("[");
      for (std::size_t i = 0; good && i < value.size(); ++i)
        good = (i == 0 || text(", ")) && follow(value[i]);
      good = good && text("]");
    } else {
      std::string scalar;
      const std::map<std::string, int> canonical;
      write(value, &canonical, scalar);
      good = text(scalar);
    }
    if (!good) back_to(before);
    return good;
  }
  bool follow_members(const Members& members, bool first) {
    if (members.empty()) return text("}");
    const std::size_t before = steps_;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::string name =
          OrderedJson(members[i].first).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
      Members others = members;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      if (text((first ? "" : ", ") + name + ": ") && follow(*members[i].second) &&
          follow_members(others, false))
        return true;
      back_to(before);
    }
    return false;
  }

  Matcher matcher_;
  const std::map<std::string, int>& order_;
  std::size_t steps_ = 0;
  int budget_ = 200'000;
};

// The order in which a schema names properties.
void collect_order(const OrderedJson& schema, std::map<std::string, int>& order) {
  if (schema.is_object()) {
    if (schema.contains("properties") && schema["properties"].is_object())
      for (const auto& [key, unused] : schema["properties"].items())
        order.try_emplace(key, static_cast<int>(order.size()));
    for (const auto& [key, member] : schema.items()) collect_order(member, order);
  } else if (schema.is_array()) {
    for (const OrderedJson& item : schema) collect_order(item, order);
  }
}

struct Times {
  std::vector<double> us;
  void add(Clock::time_point since) {
    us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - since).count());
  }
  void print(const char* name) {
    if (us.empty()) return;
    std::ranges::sort(us);
    double sum = 0;
    for (const double value : us) sum += value;
    const auto at = [&](double share) {
      return us[std::min(us.size() - 1, static_cast<std::size_t>(share * static_cast<double>(us.size())))];
    };
    std::printf("%s: n %zu  mean %.1f  p50 %.1f  p90 %.1f  p99 %.1f  p99.9 %.1f  max %.1f us\n", name,
                us.size(), sum / static_cast<double>(us.size()), at(0.5), at(0.9), at(0.99), at(0.999),
                us.back());
  }
};

struct Report {
  std::size_t schemas = 0, passing = 0, refused = 0, invalid_accepted = 0, valid_rejected = 0, failed = 0;
  std::size_t tests = 0;
  std::size_t compared = 0, wrong_bits = 0;  // masks with brute force
  std::size_t reordered = 0;  // valid, but accepted only with properties in the order of the schema
  std::map<std::string, std::size_t> reasons;
  Times compile, mask, first_mask, accept;
};

class Suites {
 public:
  // With `brute`, every so many steps the mask is compared with brute force.
  Suites(const Tokens& tokens, bool list, std::size_t brute)
      : vocabulary_(std::make_shared<GrammarVocabulary>(tokens.bytes, tokens.stop)),
        greedy_(tokens),
        list_(list),
        brute_(brute) {}

  void run(const std::string& name, const OrderedJson& schema, const OrderedJson& tests, bool reorder) {
    ++report.schemas;
    std::shared_ptr<const Grammar> grammar;
    const auto start = Clock::now();
    try {
      grammar = std::make_shared<const Grammar>(
          GrammarSource{.kind = GrammarSource::Kind::json_schema, .text = schema.dump(), .choices = {}},
          vocabulary_);
    } catch (const Error& error) {
      if (std::string_view(error.what()).find("no text fulfils") != std::string_view::npos) {
        const bool right =
            std::ranges::none_of(tests, [](const OrderedJson& test) { return test["valid"].get<bool>(); });
        ++(right ? report.passing : report.valid_rejected);
        if (!right && list_) std::printf("UNSATISFIABLE %s\n", name.c_str());
        return;
      }
      ++report.refused;
      if (list_) std::printf("REFUSED %s: %s\n", name.c_str(), error.what());
      return;
    }
    report.compile.add(start);
    std::map<std::string, int> order;
    if (reorder) collect_order(schema, order);
    bool right = true;
    for (const OrderedJson& test : tests) {
      ++report.tests;
      std::string text;
      write(test["data"], reorder ? &order : nullptr, text);
      const bool valid = test["valid"].get<bool>();
      bool accepted = false;
      try {
        accepted = accepts(grammar, text);
      } catch (const Error& error) {
        ++report.failed;
        if (list_) std::printf("FAILED %s: %s\n", name.c_str(), error.what());
        right = false;
        continue;
      }
      if (accepted == valid) continue;
      if (valid) {
        std::map<std::string, int> names;
        collect_order(schema, names);
        if (AnyOrder(grammar, names).accepts(test["data"])) {
          ++report.reordered;
          continue;
        }
      }
      right = false;
      ++(valid ? report.valid_rejected : report.invalid_accepted);
      if (list_)
        std::printf("%s %s: %.300s\n", valid ? "REJECTED-VALID" : "ACCEPTED-INVALID", name.c_str(),
                    text.c_str());
    }
    if (right) ++report.passing;
  }

  bool accepts(const std::shared_ptr<const Grammar>& grammar, const std::string& text) {
    Matcher matcher(grammar);
    std::vector<std::uint32_t> bits(matcher.mask_words());
    bool first = true;
    for (const std::int32_t token : greedy_(text)) {
      const auto start = Clock::now();
      matcher.mask(bits);
      const bool allowed = (bits[static_cast<std::size_t>(token) >> 5] >> (token & 31) & 1) != 0;
      if (allowed) matcher.accept(token);
      (first ? report.first_mask : report.mask).add(start);
      first = false;
      if (!allowed) return false;
      if (brute_ > 0 && ++steps_ % brute_ == 0) compare_with_brute_force(matcher);
    }
    return matcher.can_stop();
  }

  // Each token alone must fare as the mask says.
  void compare_with_brute_force(Matcher& matcher) {
    std::vector<std::uint32_t> bits(matcher.mask_words());
    matcher.mask(bits);
    ++report.compared;
    for (std::int32_t id = 0; id < vocabulary_->size(); ++id)
      if (((bits[static_cast<std::size_t>(id) >> 5] >> (id & 31) & 1) != 0) != matcher.allows(id))
        ++report.wrong_bits;
  }

  Report report;

 private:
  std::shared_ptr<const GrammarVocabulary> vocabulary_;
  Greedy greedy_;
  bool list_;
  std::size_t brute_, steps_ = 0;
};

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  bool list = false;
  std::string only, dialect;
  std::size_t brute = 0;
  std::erase_if(arguments, [&](const std::string& argument) {
    if (argument == "--list") return list = true;
    if (argument.starts_with("--brute=")) {
      brute = std::stoul(argument.substr(8));
      return true;
    }
    if (argument.starts_with("--dialect=")) {
      dialect = argument.substr(10);
      return true;
    }
    if (!argument.starts_with("--only=")) return false;
    only = argument.substr(7);
    return true;
  });
  if (arguments.size() < 3) {
    std::fprintf(stderr,
                 "usage: grammar_suites TOKENS (maskbench|suite) FOLDER... [--list] [--only=TEXT] "
                 "[--dialect=URI] [--brute=STEPS]\n");
    return 2;
  }
  Suites suites(read_tokens(arguments[0]), list, brute);
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(arguments[i]))
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::ranges::sort(files);
    for (const std::filesystem::path& file : files) {
      if (file.string().find(only) == std::string::npos) continue;
      const OrderedJson json = OrderedJson::parse(read_file(file));
      if (arguments[1] == "maskbench") {
        suites.run(file.filename().string(), json["schema"], json["tests"], false);
        continue;
      }
      for (const OrderedJson& group : json) {
        const std::string name = file.filename().string() + " / " + group["description"].get<std::string>();
        OrderedJson schema = group["schema"];
        if (!dialect.empty() && schema.is_object() && !schema.contains("$schema"))
          schema["$schema"] = dialect;
        suites.run(name, schema, group["tests"], true);
      }
    }
  }
  Report& report = suites.report;
  std::printf(
      "schemas %zu  passing %zu  refused %zu  tests %zu (%zu reordered)  invalid accepted %zu  "
      "valid rejected %zu  failed %zu\n",
      report.schemas, report.passing, report.refused, report.tests, report.reordered, report.invalid_accepted,
      report.valid_rejected, report.failed);
  if (report.compared > 0)
    std::printf("masks compared with brute force %zu  wrong bits %zu\n", report.compared, report.wrong_bits);
  report.compile.print("compile");
  report.first_mask.print("first step");
  report.mask.print("later steps");
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  try {
    return sluice::main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
