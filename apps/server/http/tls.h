// HTTPS.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

namespace sluice::server::http {

// Throws Error if the files are missing or do not match.
std::unique_ptr<boost::asio::ssl::context> make_tls(const std::string& certificate, const std::string& key);

}  // namespace sluice::server::http
