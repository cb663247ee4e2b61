// A model as offered by Hugging Face's hub, or another server with its protocol.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hub/transfer/transfer.h"

namespace sluice::cli::hub {

struct Host {
  std::string endpoint;  // "https://huggingface.co"
  std::string token;     // empty: none
};
// From the environment: HF_ENDPOINT and HF_TOKEN.
Host default_host();

struct RemoteFile {
  std::string name;
  std::uint64_t bytes = 0;
  transfer::Checksum::Kind kind = transfer::Checksum::Kind::sha256;
  std::string checksum;  // in hexadecimal; for sha1 that of git's blob object

  // A checksum of this kind, initialised.
  transfer::Checksum start() const;
};

struct Repository {
  std::string name;    // "Qwen/Qwen3.6-35B-A3B"
  std::string commit;  // the commit of these files
  std::vector<RemoteFile> files;

  std::uint64_t bytes() const;
  std::string url_of(const Host& host, const RemoteFile& file) const;
};

// Whether this can be the name of a model on the hub: "Owner/Name", or "Name".
bool is_repository_name(const std::string& name);

// The files needed to run a model: configuration, tokenizer, template, weights; no other formats, no
// subfolders.
Repository find_repository(const Host& host, const std::string& name, const std::string& revision);

}  // namespace sluice::cli::hub
