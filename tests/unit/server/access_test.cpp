// Access control, and the counters.
#include "server/http/access.h"

#include <gtest/gtest.h>

#include "server/http/message.h"
#include "server/local/metrics.h"

namespace sluice::server {
namespace {

TEST(Access, KeysByEitherHeader) {
  const http::Access access({{"one", "two"}, {}, false});
  EXPECT_TRUE(access.needs_key());
  EXPECT_TRUE(access.client({"Bearer one", "", "", ""}));
  EXPECT_TRUE(access.client({"", "two", "", ""}));
  EXPECT_EQ(access.client({"Bearer two", "", "", ""}), access.client({"", "two", "", ""}));
  EXPECT_NE(access.client({"Bearer two", "", "", ""}), access.client({"Bearer one", "", "", ""}));
  for (const char* wrong : {"", "Bearer ", "Bearer on", "Bearer onee", "Basic one", "one", "Bearer One"})
    EXPECT_FALSE(access.client({wrong, "", "", ""})) << wrong;
}

TEST(Access, PagesOfOtherOrigins) {
  const http::Access local({{}, {}, true});
  EXPECT_TRUE(local.allows_page({"", "", "", "127.0.0.1:8080"}));
  EXPECT_TRUE(local.allows_page({"", "", "http://localhost:8080", "localhost:8080"}));
  EXPECT_TRUE(local.allows_page({"", "", "", "[::1]:8080"}));
  EXPECT_FALSE(local.allows_page({"", "", "https://evil.example", "127.0.0.1:8080"}));
  EXPECT_FALSE(local.allows_page({"", "", "null", "127.0.0.1:8080"}));
  EXPECT_FALSE(local.allows_page({"", "", "http://evil.example:8080", "evil.example:8080"}));
  const http::Access named({{"key"}, {"https://good.example"}, false});
  EXPECT_TRUE(named.allows_page({"", "", "https://good.example", "api.example"}));
  EXPECT_FALSE(named.allows_page({"", "", "https://good.example.evil", "api.example"}));
  EXPECT_EQ(named.cors_origin({"", "", "https://good.example", ""}), "https://good.example");
  EXPECT_EQ(named.cors_origin({"", "", "https://evil.example", ""}), "");
}

TEST(Access, PagesOfThisMachine) {
  const http::Access access({{}, {"localhost"}, true});
  for (const char* here : {"http://localhost", "http://localhost:3000", "http://127.0.0.1:3000",
                           "http://[::1]:3000", "https://app.localhost"})
    EXPECT_EQ(access.cors_origin({"", "", here, "127.0.0.1:8080"}), here);
  for (const char* elsewhere : {"http://evil.example", "http://notlocalhost", "http://10.0.0.1",
                                "http://localhost.evil.example", "http://127.evil.example", "null"})
    EXPECT_EQ(access.cors_origin({"", "", elsewhere, "127.0.0.1:8080"}), "") << elsewhere;
}

TEST(HttpMessage, DecodesPaths) {
  std::string path;
  EXPECT_TRUE(http::decode_path("/a%20b%2Fc", path));
  EXPECT_EQ(path, "/a b/c");
  for (const char* wrong : {"/%", "/%2", "/%zz", "/%00", "/%-1"})
    EXPECT_FALSE(http::decode_path(wrong, path)) << wrong;
}

TEST(Metrics, HistogramsCountUp) {
  local::Metrics metrics;
  const double intervals[] = {0.3, 0.002, 0.004, 99};
  metrics.observe(intervals, true);
  metrics.count_request(200);
  const std::string text = metrics.text(nullptr);
  for (const char* line :
       {"sluice_time_to_first_token_seconds_bucket{le=\"0.25\"} 0\n",
        "sluice_time_to_first_token_seconds_bucket{le=\"0.5\"} 1\n",
        "sluice_time_between_tokens_seconds_bucket{le=\"0.0025\"} 1\n",
        "sluice_time_between_tokens_seconds_bucket{le=\"2.5\"} 2\n",
        "sluice_time_between_tokens_seconds_bucket{le=\"+Inf\"} 3\n",
        "sluice_time_between_tokens_seconds_count 3\n", "sluice_http_requests_total{status=\"200\"} 1\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

}  // namespace
}  // namespace sluice::server
