#include "hub/repository.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sluice/error.h"

namespace sluice::cli::hub {

namespace {

using nlohmann::json;

constexpr std::size_t kMostListing = std::size_t{64} << 20;
constexpr long kFound = 200;
constexpr std::size_t kShaDigits = 40;
constexpr std::size_t kSha256Digits = 64;

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

// Whether it is a plain name of a file or folder, not a path.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), is_plain);
}

bool is_hexadecimal(const std::string& text, std::size_t digits) {
  return text.size() == digits &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// The formats that this program reads, and the files that go with them.
bool is_wanted(const std::string& name) {
  if (!is_plain_name(name) || name.starts_with("consolidated")) return false;
  constexpr const char* kEndings[] = {".json", ".safetensors", ".jinja", ".txt", ".model"};
  return name.starts_with("LICENSE") || std::any_of(std::begin(kEndings), std::end(kEndings),
                                                    [&](const char* end) { return name.ends_with(end); });
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text)
    result += is_plain(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return result;
}

[[noreturn]] void refuse(long status, const std::string& name, const std::string& revision) {
  if (status == 401 || status == 403)
    throw Error(
        ErrorKind::input,
        fmt::format(
            "'{}' does not exist on the hub, or needs a token in HF_TOKEN that may see it (status {})", name,
            status));
  if (status == 404)
    throw Error(ErrorKind::input, fmt::format("the hub has no model '{}' at revision '{}'", name, revision));
  throw Error(ErrorKind::resource, fmt::format("the hub answers with status {} for '{}'", status, name));
}

RemoteFile read_file(const json& entry) {
  RemoteFile file;
  file.name = entry.at("rfilename").get<std::string>();
  if (entry.contains("lfs") && entry["lfs"].is_object()) {
    file.bytes = entry["lfs"].at("size").get<std::uint64_t>();
    file.checksum = entry["lfs"].at("sha256").get<std::string>();
  } else {
    file.bytes = entry.at("size").get<std::uint64_t>();
    file.kind = transfer::Checksum::Kind::sha1;
    file.checksum = entry.at("blobId").get<std::string>();
  }
  const std::size_t digits = file.kind == transfer::Checksum::Kind::sha1 ? kShaDigits : kSha256Digits;
  if (!is_hexadecimal(file.checksum, digits))
    throw Error(ErrorKind::input, fmt::format("the hub has no checksum for '{}'", file.name));
  return file;
}

Repository read_listing(const std::string& text, const std::string& name) {
  const json listing = json::parse(text);
  Repository repository{name, listing.at("sha").get<std::string>(), {}};
  if (!is_plain_name(repository.commit)) throw Error(ErrorKind::input, "the hub names no commit");
  for (const json& entry : listing.at("siblings"))
    if (is_wanted(entry.at("rfilename").get<std::string>())) repository.files.push_back(read_file(entry));
  return repository;
}

}  // namespace

Host default_host() {
  Host host{from_environment("HF_ENDPOINT"), from_environment("HF_TOKEN")};
  if (host.endpoint.empty()) host.endpoint = "https://huggingface.co";
  while (host.endpoint.ends_with('/')) host.endpoint.pop_back();
  return host;
}

transfer::Checksum RemoteFile::start() const {
  transfer::Checksum checksum(kind);
  if (kind == transfer::Checksum::Kind::sha1) {
    const std::string header = fmt::format("blob {}", bytes);
    checksum.add({header.c_str(), header.size() + 1});  // including the terminating zero
  }
  return checksum;
}

std::uint64_t Repository::bytes() const {
  return std::accumulate(files.begin(), files.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const RemoteFile& file) { return sum + file.bytes; });
}

std::string Repository::url_of(const Host& host, const RemoteFile& file) const {
  return fmt::format("{}/{}/resolve/{}/{}", host.endpoint, name, commit, file.name);
}

bool is_repository_name(const std::string& name) {
  const auto slash = name.find('/');
  if (slash == std::string::npos) return is_plain_name(name);
  return is_plain_name(name.substr(0, slash)) && is_plain_name(name.substr(slash + 1));
}

Repository find_repository(const Host& host, const std::string& name, const std::string& revision) {
  const transfer::Request request{
      fmt::format("{}/api/models/{}/revision/{}?blobs=true", host.endpoint, name, escaped(revision)),
      host.token};
  std::string text;
  const transfer::Result result = transfer::get(request, [&](long, std::string_view bytes) {
    text += bytes;
    return text.size() <= kMostListing;
  });
  if (result.status != 0 && result.status != kFound) refuse(result.status, name, revision);
  if (!result.trouble.empty())
    throw Error(ErrorKind::resource, fmt::format("cannot reach '{}': {}", host.endpoint, result.trouble));
  try {
    Repository repository = read_listing(text, name);
    const auto is_config = [](const RemoteFile& file) { return file.name == "config.json"; };
    const auto is_weights = [](const RemoteFile& file) { return file.name.ends_with(".safetensors"); };
    const auto& files = repository.files;
    if (std::none_of(files.begin(), files.end(), is_config) ||
        std::none_of(files.begin(), files.end(), is_weights))
      throw Error(
          ErrorKind::unsupported,
          fmt::format(
              "'{}' on the hub has no config.json with *.safetensors files; other formats are not supported",
              name));
    return repository;
  } catch (const json::exception&) {
    throw Error(ErrorKind::input, fmt::format("'{}' does not answer like a hub of models", host.endpoint));
  }
}

}  // namespace sluice::cli::hub
