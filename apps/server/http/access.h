// Who may send requests: keys, origins of pages, and the names of this machine.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::server::http {

// The headers that access depends on; empty if missing.
struct Credentials {
  std::string_view authorization, api_key, origin, host;
};

class Access {
 public:
  struct Settings {
    std::vector<std::string> keys;  // none: everyone has access
    // Other origins whose pages may send requests; "*": all, "localhost": those of this machine.
    std::vector<std::string> cors_origins;
    // If bound to this machine only and without keys: requests that name another host come from a page whose
    // name was made to resolve to this machine (DNS rebinding).
    bool only_local_names = false;
  };

  explicit Access(const Settings& settings);

  // A digest of the key, which identifies the client for fair scheduling; nothing if the key is missing or
  // wrong. Every key is compared completely, so that timing reveals nothing.
  std::optional<std::string> client(const Credentials& credentials) const;
  bool needs_key() const { return !digests_.empty(); }
  // Whether a browser on this page may send requests; true if the client is not a browser.
  bool allows_page(const Credentials& credentials) const;
  // The origin to allow in the answer's header; empty: none.
  std::string cors_origin(const Credentials& credentials) const;

 private:
  using Digest = std::array<unsigned char, 32>;

  static Digest digest_of(std::string_view text);

  std::vector<Digest> digests_;
  std::vector<std::string> origins_;
  bool only_local_names_;
};

}  // namespace sluice::server::http
