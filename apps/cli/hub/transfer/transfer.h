// A request to a model hub, and checksums of its files. Implemented with libcurl and libcrypto, or by a stub
// that reports that they are absent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace sluice::cli::hub::transfer {

struct Request {
  std::string url;
  std::string token;       // the user's, sent to the first host only; empty: none
  std::uint64_t from = 0;  // first byte to get
};

struct Result {
  long status = 0;      // 0: no answer
  std::string trouble;  // why the body is incomplete; empty: it is complete
};

// Receives the next bytes of an answer with that status; returns false to stop.
using Body = std::function<bool(long status, std::string_view bytes)>;

// Gets a page or file and follows redirects. An interrupt throws Interrupted.
Result get(const Request& request, const Body& body);

// A checksum computed incrementally.
class Checksum {
 public:
  enum class Kind { sha1, sha256 };
  explicit Checksum(Kind kind);
  ~Checksum();
  Checksum(Checksum&&) noexcept;

  void add(std::string_view bytes);
  // In hexadecimal; call once.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::cli::hub::transfer
