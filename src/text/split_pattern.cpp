#include "text/split_pattern.h"

#include <string>

#include "base/error.h"
#include "base/utf8.h"
#include "text/unicode.h"

namespace sluice::text {
namespace {

class LiteralPattern : public SplitPattern {
 public:
  explicit LiteralPattern(std::string_view literal) : literal_(literal) {}

  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    for (std::size_t at = text.find(literal_); at != text.npos;
         at = text.find(literal_, at + literal_.size()))
      matches.push_back({at, at + literal_.size()});
  }

 private:
  std::string literal_;
};

class ClassPattern : public SplitPattern {
 public:
  explicit ClassPattern(unsigned classes) : classes_(classes) {}

  void find_all(std::string_view text, std::vector<Match>& matches) const override {
    const CharClasses& classes_of = CharClasses::instance();
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = code_point_at(text, at);
      if (classes_of(c.value) & classes_) matches.push_back({at, at + c.length});
      at += c.length;
    }
  }

 private:
  unsigned classes_;
};

}  // namespace

std::unique_ptr<SplitPattern> make_literal_pattern(std::string_view literal) {
  if (literal.empty()) fail(ErrorKind::checkpoint, "the pattern of a Split pre-tokenizer is empty");
  return std::make_unique<LiteralPattern>(literal);
}

std::unique_ptr<SplitPattern> make_class_pattern(unsigned char_class) {
  return std::make_unique<ClassPattern>(char_class);
}

}  // namespace sluice::text
