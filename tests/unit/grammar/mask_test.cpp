// Masks compared with brute force: every token of the vocabulary is matched byte by byte at random positions
// of random texts.
#include <fstream>
#include <iterator>

#include "source_dir.h"
#include "text/tokenizer.h"
#include "unit/grammar/grammar_fixture.h"

namespace sluice {
namespace {

struct MaskCase {
  const char* name;
  GrammarSource source;
};

const char* const kObject = R"({"type":"object","properties":{
  "name":{"type":"string"},"short":{"type":"string","maxLength":5},"long":{"type":"string","minLength":3,"maxLength":60},
  "code":{"type":"string","pattern":"^[a-z]{2,8}-\\d+$"},"n":{"type":"integer","minimum":-5,"maximum":1200},
  "x":{"type":"number"},"list":{"type":"array","items":{"$ref":"#"},"maxItems":3},
  "e":{"enum":["a","ab","abc",1,null]},"day":{"type":"string","format":"date"}},"required":["name","list"]})";

std::vector<MaskCase> cases() {
  using Kind = GrammarSource::Kind;
  return {
      {"json", {.kind = Kind::json, .text = "", .choices = {}, .whitespace = JsonWhitespace::any}},
      {"schema", {.kind = Kind::json_schema, .text = kObject, .choices = {}}},
      {"compact",
       {.kind = Kind::json_schema, .text = kObject, .choices = {}, .whitespace = JsonWhitespace::none}},
      {"map",
       {.kind = Kind::json_schema,
        .text = R"({"properties":{"a":{"type":"integer"},"ab":{}},"patternProperties":{"^x":{"type":"null"}},
               "additionalProperties":{"type":"string","pattern":"b"},"minProperties":1,"maxProperties":4})",
        .choices = {}}},
      {"regex", {.kind = Kind::regex, .text = R"((ab|a)*\d{2,4}[^0-9]{1,9}(日本|ä).*)", .choices = {}}},
      {"ebnf",
       {.kind = Kind::ebnf,
        .text = "root ::= expr\nexpr ::= term (\" \"? [-+] \" \"? term)*\nterm ::= [0-9]+ | \"(\" expr \")\" "
                "| \"a\" term \"b\"",
        .choices = {}}},
      {"ambiguous",
       {.kind = Kind::ebnf,
        .text = "root ::= s\ns ::= \"a\" s \"b\" | \"a\" s | \"ab\" s | \"\"",
        .choices = {}}},
      {"choice", {.kind = Kind::choice, .text = "", .choices = {"abc", "abcabc", "日本語", "true, 1"}}},
  };
}

class MaskTest {
 public:
  MaskTest(std::shared_ptr<const GrammarVocabulary> vocabulary, std::vector<std::string> bytes,
           std::int32_t stop)
      : vocabulary_(std::move(vocabulary)), bytes_(std::move(bytes)), stop_(stop) {}

  void check(const MaskCase& mask_case, unsigned seed, int texts) {
    const auto grammar = std::make_shared<const Grammar>(mask_case.source, vocabulary_);
    std::mt19937 random(seed);
    for (int text = 0; text < texts; ++text) {
      Matcher matcher(grammar);
      std::string so_far;
      for (int step = 0; step < 40 && !matcher.finished(); ++step) {
        std::vector<std::int32_t> allowed = checked_mask(matcher, mask_case.name, seed, so_far);
        if (HasFailure()) return;
        ASSERT_FALSE(allowed.empty()) << mask_case.name << " seed " << seed << " is stuck after: " << so_far;
        const std::int32_t token = allowed[random() % allowed.size()];
        so_far += bytes_[static_cast<std::size_t>(token)];
        matcher.accept(token);
      }
    }
  }

 private:
  static bool HasFailure() { return ::testing::Test::HasFailure(); }

  std::vector<std::int32_t> checked_mask(Matcher& matcher, const char* name, unsigned seed,
                                         const std::string& so_far) {
    std::vector<std::uint32_t> bits(matcher.mask_words(), 0xDEADBEEF);
    matcher.mask(bits);
    std::vector<std::int32_t> allowed;
    for (std::size_t id = 0; id < bytes_.size(); ++id) {
      const bool in_mask = (bits[id >> 5] >> (id & 31) & 1) != 0;
      bool expected = false;
      if (static_cast<std::int32_t>(id) == stop_) {
        expected = matcher.can_stop();
      } else if (!bytes_[id].empty()) {
        expected = matcher.accept_text(bytes_[id]) == bytes_[id].size();
        matcher.rollback(1);
      }
      EXPECT_EQ(in_mask, expected) << name << " seed " << seed << " token '" << bytes_[id]
                                   << "' after: " << so_far;
      if (in_mask != expected) return {};
      if (in_mask) allowed.push_back(static_cast<std::int32_t>(id));
    }
    for (std::size_t bit = bytes_.size(); bit < 32 * bits.size(); ++bit)
      EXPECT_EQ(bits[bit >> 5] >> (bit & 31) & 1, 0u) << "a bit beyond the vocabulary";
    return allowed;
  }

  std::shared_ptr<const GrammarVocabulary> vocabulary_;
  std::vector<std::string> bytes_;
  std::int32_t stop_;
};

TEST(GrammarMask, EqualsBruteForce) {
  const TestVocabulary& vocabulary = test_vocabulary();
  MaskTest test(vocabulary.shared, vocabulary.bytes, TestVocabulary::kStop);
  for (const MaskCase& mask_case : cases())
    for (unsigned seed = 1; seed <= 3; ++seed) test.check(mask_case, seed, 4);
}

TEST(GrammarMask, EqualsBruteForceWithATokenizer) {
  std::ifstream file(source_dir() + "/models/delta-story/tokenizer.json", std::ios::binary);
  const text::Tokenizer tokenizer =
      text::Tokenizer::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  std::vector<std::string> bytes;
  std::int32_t stop = -1;
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    bytes.emplace_back(tokenizer.is_special(id) ? "" : tokenizer.bytes(id));
    if (tokenizer.is_special(id)) stop = id;
  }
  ASSERT_GE(stop, 0);
  const std::int32_t stops[] = {stop};
  MaskTest test(std::make_shared<GrammarVocabulary>(bytes, stops), bytes, stop);
  for (const MaskCase& mask_case : cases()) test.check(mask_case, 11, 1);
}

// Tables of the vocabulary are shared by their descriptions; these runs differ in an end that is too long for
// a description.
TEST(GrammarMask, RunsWithLongEndsAreDistinguished) {
  const TestVocabulary& vocabulary = test_vocabulary();
  MaskTest test(vocabulary.shared, vocabulary.bytes, TestVocabulary::kStop);
  for (const char* end : {"1", "22", "-", "--"}) {
    const GrammarSource source{.kind = GrammarSource::Kind::regex,
                               .text = "[a-zA-Z ]{1,9}" + (end + std::string(400, '0')),
                               .choices = {}};
    test.check({end, source}, 5, 4);
  }
}

TEST(GrammarMask, SpecialTokensAreNotMatchedByTheirBytes) {
  std::vector<std::string> bytes = {"<end>", "a", "<", "e", "n", "d", ">"};
  const std::int32_t stop[] = {0};
  const auto vocabulary = std::make_shared<GrammarVocabulary>(bytes, stop);
  Matcher matcher(std::make_shared<const Grammar>(
      GrammarSource{.kind = GrammarSource::Kind::regex, .text = "a<end>", .choices = {}}, vocabulary));
  matcher.accept(1);
  EXPECT_FALSE(matcher.allows(0));
  EXPECT_EQ(matcher.forced(), 2);
  EXPECT_EQ(matcher.forced_text(), "<end>");
  for (const std::int32_t token : {2, 3, 4, 5, 6}) matcher.accept(token);
  EXPECT_EQ(matcher.forced(), 0);
  matcher.accept(0);
  EXPECT_TRUE(matcher.finished());
}

}  // namespace
}  // namespace sluice
