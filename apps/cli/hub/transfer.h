// One request to a hub of models, and the checksums it gives for its files. Both are libcurl's and
// libcrypto's work, or a stub's that says they are absent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace sluice::cli {

struct HttpRequest {
  std::string url;
  std::string token;       // of whoever asks, sent to the first host alone; empty: none
  std::uint64_t from = 0;  // the first byte that is wanted
};

struct HttpResult {
  long status = 0;      // 0: there was no answer
  std::string trouble;  // why the body did not come to its end; empty: it did
};

// Takes the next bytes of an answer with that status; false: no more are wanted.
using HttpBody = std::function<bool(long status, std::string_view bytes)>;

// Gets a page or file, following where it has moved to. An interrupt ends it as Interrupted.
HttpResult http_get(const HttpRequest& request, const HttpBody& body);

// Of bytes as they come.
class Checksum {
 public:
  enum class Kind { sha1, sha256 };
  explicit Checksum(Kind kind);
  ~Checksum();
  Checksum(Checksum&&) noexcept;

  void add(std::string_view bytes);
  // In hexadecimal; once.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::cli
