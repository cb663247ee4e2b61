// The first byte chooses a format, the rest is an answer: however it is split, the result must be the same,
// and nothing may be lost.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/answer.h"

namespace {

using sluice::AnswerDelta;

struct Answer {
  std::string shown;
  std::string text;  // of thinking and content
  bool calls = false;
};

Answer read(const sluice::AnswerFormat& format, std::string_view text, std::size_t piece) {
  sluice::AnswerParser parser(format, {{"f", {{"n", "integer"}, {"s", "string"}}}});
  Answer answer;
  std::string& out = answer.shown;
  int last = -1;
  const auto add = [&](const auto& deltas) {
    for (const AnswerDelta& delta : deltas) {
      const int label = static_cast<int>(delta.kind) * 2 + (delta.malformed_call ? 1 : 0);
      if (label != last || delta.kind == AnswerDelta::Kind::call)
        out += '\n' + std::to_string(label) + delta.function + ':';
      out += delta.text;
      const bool call = delta.kind == AnswerDelta::Kind::call;
      answer.calls |= call;
      if (!call) answer.text += delta.text;
      last = label;
    }
  };
  for (std::size_t at = 0; at < text.size(); at += piece) add(parser.push(text.substr(at, piece)));
  add(parser.finish());
  return answer;
}

std::string without_blanks(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') out += c;
  return out;
}

// Without calls, the parser returns the entire answer except blanks and the tags of thinking: one that opens
// it at the start, and one that closes it, which is not always the first, because a malformed call may
// contain more.
bool is_whole(const sluice::AnswerFormat& format, std::string_view given, std::string_view written) {
  const std::string rest = without_blanks(given);
  std::vector<std::string> texts = {without_blanks(written)};
  if (!format.prompt_opens_thinking && texts[0].starts_with(format.think_open))
    texts.push_back(texts[0].substr(format.think_open.size()));
  for (const std::string& text : texts) {
    if (text == rest) return true;
    for (std::size_t at = 0; (at = text.find(format.think_close, at)) != text.npos; ++at)
      if (text.substr(0, at) + text.substr(at + format.think_close.size()) == rest) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using sluice::ToolCallFormat;
  if (size == 0 || size > 4096) return 0;
  constexpr std::array kFormats = {ToolCallFormat::none,           ToolCallFormat::json_in_tags,
                                   ToolCallFormat::xml_parameters, ToolCallFormat::deepseek_v3,
                                   ToolCallFormat::deepseek_v31,   ToolCallFormat::plain_json};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const sluice::AnswerFormat format{.calls = kFormats[data[0] % kFormats.size()],
                                    .think_open = "<think>",
                                    .think_close = "</think>",
                                    .prompt_opens_thinking = (data[0] & 64) != 0};
  const Answer whole = read(format, text, text.size() + 1);
  if (!whole.calls && !is_whole(format, whole.text, text)) __builtin_trap();
  for (const std::size_t piece : {1, 2, 3, 7})
    if (read(format, text, piece).shown != whole.shown) __builtin_trap();
  return 0;
}
