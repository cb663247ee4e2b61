// The chat page of the server: one document without external assets, assembled at build time from index.html,
// style.css and script/*.js by embed.cmake.
#pragma once

#include <string_view>

namespace sluice::server::page {

struct Document {
  std::string_view html;
  // The value of the Content-Security-Policy header. It allows the page's one script and one style sheet by
  // their hashes, so nothing else ever runs there, whatever an answer contains.
  std::string_view content_security_policy;
};

const Document& document();

}  // namespace sluice::server::page
