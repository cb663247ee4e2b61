#include "server/anthropic/cache_marks.h"

#include <algorithm>
#include <limits>

#include "server/api_error.h"

namespace sluice::server::anthropic {

namespace {

constexpr std::size_t kMostMarks = 4;

bool marked(const Json& block) {
  if (!block.is_object()) return false;
  const auto mark = block.find("cache_control");
  if (mark == block.end() || mark->is_null()) return false;
  if (!mark->is_object() || mark->value("type", Json()) != "ephemeral")
    throw bad_request("cache_control.type: Input should be 'ephemeral'", "cache_control");
  return true;
}

std::size_t marks_in(const Json& blocks) {
  return blocks.is_array() ? static_cast<std::size_t>(std::count_if(blocks.begin(), blocks.end(), marked))
                           : 0;
}

}  // namespace

std::vector<std::int64_t> cache_marks(const Json& body) {
  constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> marks;
  for (const char* name : {"tools", "system"})
    if (body.contains(name)) marks.insert(marks.end(), marks_in(body[name]), kFirst);
  const Json messages = body.value("messages", Json::array());
  for (std::size_t i = 0; messages.is_array() && i < messages.size(); ++i)
    if (messages[i].is_object() && messages[i].contains("content"))
      marks.insert(marks.end(), marks_in(messages[i]["content"]),
                   static_cast<std::int64_t>(messages.size() - 1 - i));
  if (marked(body)) marks.push_back(0);  // at the last block
  if (marks.size() > kMostMarks)
    throw bad_request("A maximum of 4 blocks with cache_control may be provided.", "cache_control");
  return marks;
}

}  // namespace sluice::server::anthropic
