#include "server/http/tls.h"

#include <fmt/core.h>

#include "sluice/error.h"

namespace sluice::server::http {

namespace ssl = boost::asio::ssl;

std::unique_ptr<ssl::context> make_tls(const std::string& certificate, const std::string& key) {
  if (certificate.empty() || key.empty())
    throw Error(ErrorKind::input, "HTTPS needs both --tls-cert and --tls-key");
  auto context = std::make_unique<ssl::context>(ssl::context::tls_server);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 | ssl::context::no_sslv3 |
                       ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  const auto check = [](const boost::system::error_code& error, const std::string& file) {
    if (error)
      throw Error(ErrorKind::input, fmt::format("cannot use '{}' for HTTPS: {}", file, error.message()));
  };
  boost::system::error_code error;
  context->use_certificate_chain_file(certificate, error);
  check(error, certificate);
  context->use_private_key_file(key, ssl::context::pem, error);
  check(error, key);
  return context;
}

}  // namespace sluice::server::http
