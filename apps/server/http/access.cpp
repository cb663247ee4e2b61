#include "server/http/access.h"

#include <fmt/core.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>

namespace sluice::server::http {

namespace {

std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool is_named_local(std::string_view name) {
  return name == "localhost" || name.ends_with(".localhost");
}

// Whether the page was served by this machine, on any port.
bool is_from_here(std::string_view origin) {
  const std::size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos) return false;
  const std::string_view name = without_port(origin.substr(scheme + 3));
  return is_named_local(name) || name == "[::1]" ||
         (name.starts_with("127.") && name.find_first_not_of("0123456789.") == std::string_view::npos);
}

bool is_local_name(std::string_view host) {
  const std::string_view name = without_port(host);
  // A name can be made to resolve to this machine, an address cannot.
  const bool address =
      name.starts_with('[') || name.find_first_not_of("0123456789.") == std::string_view::npos;
  return address || is_named_local(name);
}

}  // namespace

Access::Access(const Settings& settings)
    : origins_(settings.cors_origins), only_local_names_(settings.only_local_names) {
  for (const std::string& key : settings.keys) digests_.push_back(digest_of(key));
}

Access::Digest Access::digest_of(std::string_view text) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

std::optional<std::string> Access::client(const Credentials& credentials) const {
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view key = credentials.api_key;
  if (credentials.authorization.starts_with(kBearer)) key = credentials.authorization.substr(kBearer.size());
  const Digest asked = digest_of(key);
  int found = 0;
  for (const Digest& known : digests_) found |= CRYPTO_memcmp(known.data(), asked.data(), known.size()) == 0;
  if (found == 0) return std::nullopt;
  std::string name = "key-";
  for (std::size_t i = 0; i < 8; ++i) name += fmt::format("{:02x}", asked[i]);
  return name;
}

bool Access::allows_page(const Credentials& credentials) const {
  if (only_local_names_ && !is_local_name(credentials.host)) return false;
  if (credentials.origin.empty() || !cors_origin(credentials).empty()) return true;
  const std::size_t scheme = credentials.origin.find("://");
  return scheme != std::string_view::npos && credentials.origin.substr(scheme + 3) == credentials.host;
}

std::string Access::cors_origin(const Credentials& credentials) const {
  if (credentials.origin.empty()) return {};
  const auto named = [&](std::string_view origin) {
    return std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
  };
  const bool allowed =
      named("*") || named(credentials.origin) || (named("localhost") && is_from_here(credentials.origin));
  return allowed ? std::string(credentials.origin) : std::string();
}

}  // namespace sluice::server::http
