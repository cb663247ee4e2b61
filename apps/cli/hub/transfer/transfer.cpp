#include "hub/transfer/transfer.h"

#include <curl/curl.h>
#include <fmt/core.h>
#include <openssl/evp.h>

#include <array>
#include <exception>

#include "sluice/error.h"
#include "terminal/signals.h"

namespace sluice::cli::hub::transfer {

namespace {

constexpr long kConnectSeconds = 30;
constexpr long kSilentSeconds = 60;  // without data, after which a connection counts as dead
constexpr long kMostMoves = 8;

struct Transfer {
  CURL* handle;
  const Body& body;
  std::exception_ptr error;  // exceptions must not pass through C code
};

std::size_t take(char* bytes, std::size_t, std::size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  long status = 0;
  curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
  try {
    return transfer.body(status, {bytes, size}) ? size : CURL_WRITEFUNC_ERROR;
  } catch (...) {
    transfer.error = std::current_exception();
    return CURL_WRITEFUNC_ERROR;
  }
}

int go_on(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return terminal::interrupted() ? 1 : 0;
}

void set_up(CURL* handle, const Request& request, Transfer& transfer) {
  // An encrypted connection must not be redirected to an unencrypted one.
  const char* protocols = request.url.starts_with("https:") ? "https" : "http,https";
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, protocols);
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, kMostMoves);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "sluice");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, go_on);
  if (!request.token.empty()) {
    curl_easy_setopt(handle, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(handle, CURLOPT_XOAUTH2_BEARER, request.token.c_str());
  }
  // Set as a header, not as RESUME_FROM: with that libcurl fails if a server sends the complete file instead,
  // which is allowed.
  if (request.from > 0) curl_easy_setopt(handle, CURLOPT_RANGE, fmt::format("{}-", request.from).c_str());
}

}  // namespace

Result get(const Request& request, const Body& body) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, void (*)(CURL*)> handle(curl_easy_init(), curl_easy_cleanup);
  if (started != CURLE_OK || handle == nullptr)
    throw Error(ErrorKind::resource, "libcurl cannot be initialised");
  Transfer transfer{handle.get(), body, nullptr};
  std::array<char, CURL_ERROR_SIZE> detail{};
  curl_easy_setopt(handle.get(), CURLOPT_ERRORBUFFER, detail.data());
  set_up(handle.get(), request, transfer);
  const CURLcode code = curl_easy_perform(handle.get());
  if (transfer.error != nullptr) std::rethrow_exception(transfer.error);
  terminal::stop_if_interrupted();
  Result result;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &result.status);
  if (code != CURLE_OK) result.trouble = detail[0] != '\0' ? detail.data() : curl_easy_strerror(code);
  return result;
}

struct Checksum::State {
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

Checksum::Checksum(Kind kind) : state_(std::make_unique<State>()) {
  const EVP_MD* algorithm = kind == Kind::sha1 ? EVP_sha1() : EVP_sha256();
  if (EVP_DigestInit_ex(state_->context.get(), algorithm, nullptr) != 1)
    throw Error(ErrorKind::resource, "libcrypto cannot be initialised");
}

Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;

void Checksum::add(std::string_view bytes) {
  EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size());
}

std::string Checksum::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace sluice::cli::hub::transfer
