// As in the server's library, which compiles the sources of Asio once; here they are only declared.
#define BOOST_ASIO_SEPARATE_COMPILATION
#define BOOST_ASIO_NO_DEPRECATED
#ifdef __SANITIZE_THREAD__
#define BOOST_ASIO_DISABLE_FENCED_BLOCK
#endif
#include "server/http/inbox.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

namespace sluice::server {
namespace {

GeneratedToken token(std::size_t bytes) {
  GeneratedToken made;
  made.text = std::string(bytes, 'x');
  return made;
}

TEST(Inbox, KeepsSoMuchForAClientThatDoesNotRead) {
  boost::asio::io_context io;
  const auto inbox = std::make_shared<http::Inbox>(io.get_executor(), 2, 5000);
  const RequestCallbacks first = inbox->callbacks(0), second = inbox->callbacks(1);
  first.token(token(2000));
  second.token(token(2000));
  EXPECT_FALSE(inbox->overflowed());
  second.token(token(2000));
  EXPECT_TRUE(inbox->overflowed());
  EXPECT_EQ(inbox->take()[1].tokens.size(), 2U);
  EXPECT_FALSE(inbox->overflowed()) << "what was taken waits no more";
}

TEST(Inbox, GivesWhatCameSinceItWasLookedAtLast) {
  boost::asio::io_context io;
  const auto inbox = std::make_shared<http::Inbox>(io.get_executor(), 1, 1 << 20);
  const RequestCallbacks callbacks = inbox->callbacks(0);
  EXPECT_FALSE(inbox->progress());
  callbacks.progress(64, 200);
  callbacks.progress(128, 200);
  EXPECT_EQ(inbox->progress()->cached, 64);
  EXPECT_EQ(inbox->progress()->read, 128);
  callbacks.token(token(1));
  std::vector<http::News> news = inbox->take();
  EXPECT_TRUE(news[0].first);
  EXPECT_FALSE(news[0].result);
  callbacks.token(token(1));
  callbacks.token(token(2));
  callbacks.done({});
  news = inbox->take();
  EXPECT_FALSE(news[0].first);
  ASSERT_EQ(news[0].tokens.size(), 2U);
  EXPECT_EQ(news[0].tokens[1].text, "xx");
  EXPECT_EQ(news[0].intervals.size(), 2U);
  EXPECT_TRUE(news[0].result);
}

}  // namespace
}  // namespace sluice::server
