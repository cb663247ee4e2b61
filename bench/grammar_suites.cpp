// Runs suites of JSON schemas with instances through the grammar, and reports what is accepted, what is
// rejected, and how long compiling and each mask take on one core. `tools/check grammar` calls it.
// Usage: grammar_suites TOKENS (maskbench|suite|generate|turns) FOLDER... [--list] [--only=TEXT]
// [--dialect=URI] [--every=FILES] [--brute=STEPS] [--slow=US]
// TOKENS is a tokenizer.json, or a file of tokens: their number, then for each its length (bit 31: special)
// as 32-bit little-endian numbers and its bytes. A maskbench file is {"schema", "tests": [{"data",
// "valid"}]}, a suite file an array of {"description", "schema", "tests"}. `generate` writes documents for
// the schemas of maskbench files without tests, which tools/check_generated.py judges. `turns` takes no
// folder: it reads names of maskbench files and answers each with a line of JSON, for tools/grammar_peers.py.
#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "any_order.h"
#include "sluice/error.h"
#include "sluice/grammar.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

// The processor time of this thread: other programs on the machine do not count.
struct Clock {
  using time_point = double;  // in microseconds
  static time_point now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
  }
};

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

// Takes the longest allowed token at each position: not what a model would choose, but the same for every
// engine.
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

struct Times {
  std::vector<double> us;
  double add(Clock::time_point since) {
    us.push_back(Clock::now() - since);
    return us.back();
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
  std::size_t compared = 0, wrong_bits = 0;  // masks compared with brute force
  std::size_t reordered = 0;                 // valid, but accepted only with properties in the schema's order
  std::map<std::string, std::size_t> reasons;
  Times compile, mask, first_mask, accept;
};

struct Options {
  bool list = false;       // list unexpected results
  std::size_t brute = 0;   // compare every this many-th mask with brute force
  double slow = HUGE_VAL;  // list steps and compilations that take longer, in microseconds
  std::size_t every = 1;   // use only every this many-th file
  std::string only, dialect;
};

class Suites {
 public:
  Suites(const Tokens& tokens, const Options& options)
      : vocabulary_(std::make_shared<GrammarVocabulary>(tokens.bytes, tokens.stop)),
        bytes_(tokens.bytes),
        greedy_(tokens),
        list_(options.list),
        brute_(options.brute),
        slow_(options.slow) {}

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
    if (const double us = report.compile.add(start); us > slow_)
      std::printf("SLOW %s: %.0f us to compile\n", name.c_str(), us);
    const PropertyOrders orders(schema);
    bool right = true;
    for (const OrderedJson& test : tests) {
      ++report.tests;
      std::string text;
      write(test["data"], reorder ? &orders : nullptr, text);
      const bool valid = test["valid"].get<bool>();
      bool accepted = false;
      try {
        accepted = accepts(name, grammar, text);
      } catch (const Error& error) {
        ++report.failed;
        if (list_) std::printf("FAILED %s: %s\n", name.c_str(), error.what());
        right = false;
        continue;
      }
      if (accepted == valid) continue;
      if (valid && AnyOrder(grammar, orders).accepts(test["data"])) {
        ++report.reordered;
        continue;
      }
      right = false;
      ++(valid ? report.valid_rejected : report.invalid_accepted);
      if (list_)
        std::printf("%s %s: %.300s\n", valid ? "REJECTED-VALID" : "ACCEPTED-INVALID", name.c_str(),
                    text.c_str());
    }
    if (right) ++report.passing;
  }

  bool accepts(const std::string& name, const std::shared_ptr<const Grammar>& grammar,
               const std::string& text) {
    Matcher matcher(grammar);
    std::size_t read = 0;
    std::vector<std::uint32_t> bits(matcher.mask_words());
    bool first = true;
    for (const std::int32_t token : greedy_(text)) {
      const auto start = Clock::now();
      matcher.mask(bits);
      const bool allowed = (bits[static_cast<std::size_t>(token) >> 5] >> (token & 31) & 1) != 0;
      if (allowed) matcher.accept(token);
      const double us = (first ? report.first_mask : report.mask).add(start);
      if (us > slow_)
        std::printf("SLOW %s: %.0f us after %.120s\n", name.c_str(), us, text.substr(0, read).c_str());
      read += bytes_[static_cast<std::size_t>(token)].size();
      first = false;
      if (!allowed) return false;
      if (brute_ > 0 && ++steps_ % brute_ == 0) compare_with_brute_force(matcher);
    }
    return matcher.can_stop();
  }

  // Writes documents of the schema, one per line after the name, for another program to judge.
  void generate(const std::string& name, const OrderedJson& schema) {
    constexpr int kDocuments = 3;
    ++report.schemas;
    std::shared_ptr<const Grammar> grammar;
    try {
      grammar = std::make_shared<const Grammar>(
          GrammarSource{.kind = GrammarSource::Kind::json_schema, .text = schema.dump(), .choices = {}},
          vocabulary_);
      std::vector<std::string> words;
      collect_words(schema, words);
      for (int i = 0; i < kDocuments; ++i)
        if (std::optional<std::string> text = random_document(grammar, words)) {
          // Line breaks and tabs only occur outside of strings, where they are equivalent to blanks.
          std::ranges::replace_if(
              *text, [](char c) { return c == '\n' || c == '\t'; }, ' ');
          std::printf("%s\t%s\n", name.c_str(), text->c_str());
        } else if (list_) {
          std::printf("UNFINISHED %s\n", name.c_str());
        }
    } catch (const Error& error) {
      ++report.refused;
      if (list_) std::printf("REFUSED %s: %s\n", name.c_str(), error.what());
    }
  }

  // The values and names in a schema, as they appear in documents.
  static void collect_words(const OrderedJson& schema, std::vector<std::string>& words) {
    if (!schema.is_structured()) return;
    for (const auto& [name, part] : schema.items()) {
      if (schema.is_object()) words.push_back(OrderedJson(name).dump() + ": ");
      if (part.is_string()) words.push_back(part.dump() + ": ");  // if it is a required name
      if (part.is_primitive()) words.push_back(part.dump());
      collect_words(part, words);
    }
  }

  // Takes any allowed token, or a word of the schema; the longer the text, the likelier one that closes
  // something.
  std::optional<std::string> random_document(const std::shared_ptr<const Grammar>& grammar,
                                             const std::vector<std::string>& words) {
    constexpr std::size_t kMaxTokens = 12'000, kPatience = 150, kWordEvery = 4;
    Matcher matcher(grammar);
    std::vector<std::uint32_t> bits(matcher.mask_words());
    std::string text;
    for (std::size_t step = 0; step < kMaxTokens; ++step) {
      const bool tired = random_() % kPatience < step;
      if (matcher.can_stop() && (tired || matcher.must_stop())) return text;
      if (!words.empty() && random_() % kWordEvery == 0) {
        const std::string& word = words[random_() % words.size()];
        if (matcher.accept_text(word) == word.size()) {
          text += word;
          continue;
        }
        matcher.rollback(1);
      }
      matcher.mask(bits);
      std::vector<std::int32_t> allowed, closing;
      for (std::int32_t id = 0; id < vocabulary_->size(); ++id) {
        const std::string& token = bytes_[static_cast<std::size_t>(id)];
        if ((bits[static_cast<std::size_t>(id) >> 5] >> (id & 31) & 1) == 0 || token.empty()) continue;
        allowed.push_back(id);
        if (token == "\"" || token == "}" || token == "]") closing.push_back(id);
      }
      if (allowed.empty()) return matcher.can_stop() ? std::optional(text) : std::nullopt;
      const std::vector<std::int32_t>& from = tired && !closing.empty() ? closing : allowed;
      const std::int32_t token = from[random_() % from.size()];
      matcher.accept(token);
      text += bytes_[static_cast<std::size_t>(token)];
    }
    return std::nullopt;
  }

  // Each single token must be accepted or rejected as the mask says.
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
  std::vector<std::string> bytes_;
  Greedy greedy_;
  bool list_;
  std::size_t brute_, steps_ = 0;
  std::mt19937 random_{7};
  double slow_;
};

// Files of the JSON-Schema-Test-Suite about keywords that do not affect validity: the formats that are
// enforced have their own files in optional/format.
bool only_annotates(const std::filesystem::path& file) {
  return file.filename() == "format.json" || file.filename() == "content.json";
}

// Removes what begins with "--" from the arguments.
Options take_options(std::vector<std::string>& arguments) {
  Options options;
  std::erase_if(arguments, [&](const std::string& argument) {
    if (!argument.starts_with("--")) return false;
    const std::size_t equals = std::min(argument.find('='), argument.size());
    const std::string name = argument.substr(0, equals);
    const std::string value = argument.substr(std::min(equals + 1, argument.size()));
    if (name == "--list") {
      options.list = true;
    } else if (name == "--brute") {
      options.brute = std::stoul(value);
    } else if (name == "--slow") {
      options.slow = std::stod(value);
    } else if (name == "--every") {
      options.every = std::max(1ul, std::stoul(value));
    } else if (name == "--dialect") {
      options.dialect = value;
    } else if (name == "--only") {
      options.only = value;
    } else {
      throw Error(ErrorKind::input, name + ": unknown option");
    }
    return true;
  });
  return options;
}

// Processes one file at a time, as requested by another program; prints the result and all times in
// microseconds.
void take_turns(Suites& suites) {
  for (std::string path; std::getline(std::cin, path);) {
    suites.report = {};
    const OrderedJson json = OrderedJson::parse(read_file(path));
    suites.run(path, json["schema"], json["tests"], false);
    const Report& report = suites.report;
    const OrderedJson answer = {{"passes", report.passing == 1},
                                {"refused", report.refused == 1},
                                {"invalid_accepted", report.invalid_accepted},
                                {"valid_rejected", report.valid_rejected},
                                {"compile", report.compile.us},
                                {"first", report.first_mask.us},
                                {"later", report.mask.us}};
    std::printf("%s\n", answer.dump().c_str());
    std::fflush(stdout);
  }
}

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const Options options = take_options(arguments);
  if (arguments.size() == 2 && arguments[1] == "turns") {
    Suites suites(read_tokens(arguments[0]), options);
    take_turns(suites);
    return 0;
  }
  if (arguments.size() < 3) {
    std::fprintf(
        stderr,
        "usage: grammar_suites TOKENS (maskbench|suite|generate|turns) FOLDER... [--list] [--only=TEXT] "
        "[--dialect=URI] [--every=FILES] [--brute=STEPS] [--slow=US]\n");
    return 2;
  }
  Suites suites(read_tokens(arguments[0]), options);
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(arguments[i]))
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::ranges::sort(files);
    for (std::size_t at = 0; at < files.size(); at += options.every) {
      const std::filesystem::path& file = files[at];
      if (file.string().find(options.only) == std::string::npos || only_annotates(file)) continue;
      const OrderedJson json = OrderedJson::parse(read_file(file));
      if (arguments[1] == "generate") {
        if (json["tests"].empty()) suites.generate(file.filename().string(), json["schema"]);
        continue;
      }
      if (arguments[1] == "maskbench") {
        suites.run(file.filename().string(), json["schema"], json["tests"], false);
        continue;
      }
      for (const OrderedJson& group : json) {
        const std::string name = file.filename().string() + " / " + group["description"].get<std::string>();
        OrderedJson schema = group["schema"];
        if (!options.dialect.empty() && schema.is_object() && !schema.contains("$schema"))
          schema["$schema"] = options.dialect;
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
