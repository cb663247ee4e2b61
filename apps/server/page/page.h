// The page that people talk to the server with: one document without outside assets. It is joined at build
// time from index.html, style.css and script/*.js by embed.cmake.
#pragma once

#include <string_view>

namespace sluice::server::page {

struct Document {
  std::string_view html;
  // The value of the Content-Security-Policy header. It names the page's one script and one style sheet by
  // their hashes, so that nothing else ever runs there, whatever an answer contains.
  std::string_view content_security_policy;
};

const Document& document();

}  // namespace sluice::server::page
