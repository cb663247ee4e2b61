// Who may ask: keys, the origins of pages, and the names this machine goes by.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::server::http {

// The headers that access depends on; empty where they are missing.
struct Credentials {
  std::string_view authorization, api_key, origin, host;
};

class Access {
 public:
  struct Settings {
    std::vector<std::string> keys;  // none: everyone may ask
    // Pages of other origins that may ask; "*": all, "localhost": those of this machine.
    std::vector<std::string> cors_origins;
    // Bound to this machine alone and without keys: requests that name another host come from a page whose
    // name was bent to point here.
    bool only_local_names = false;
  };

  explicit Access(const Settings& settings);

  // A digest of the key for its owner's fair share; nothing where a key is missing or wrong. Every key is
  // compared whole, so that time tells nothing.
  std::optional<std::string> client(const Credentials& credentials) const;
  bool needs_key() const { return !digests_.empty(); }
  // Whether a browser on this page may send requests, or whoever asks is no browser.
  bool allows_page(const Credentials& credentials) const;
  // The origin to allow in the answer; empty: none.
  std::string cors_origin(const Credentials& credentials) const;

 private:
  using Digest = std::array<unsigned char, 32>;

  static Digest digest_of(std::string_view text);

  std::vector<Digest> digests_;
  std::vector<std::string> origins_;
  bool only_local_names_;
};

}  // namespace sluice::server::http
