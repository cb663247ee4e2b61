// A model as Hugging Face's hub, or what speaks its protocol, offers it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hub/transfer.h"

namespace sluice::cli {

struct Hub {
  std::string endpoint;  // "https://huggingface.co"
  std::string token;     // empty: none
};
// By the environment: HF_ENDPOINT and HF_TOKEN.
Hub default_hub();

struct RemoteFile {
  std::string name;
  std::uint64_t bytes = 0;
  Checksum::Kind kind = Checksum::Kind::sha256;
  std::string checksum;  // in hexadecimal; of what git calls a blob where the kind is sha1

  // One that has begun as this kind wants it.
  Checksum start() const;
};

struct Repository {
  std::string name;    // "Qwen/Qwen3.6-35B-A3B"
  std::string commit;  // which the files are of
  std::vector<RemoteFile> files;

  std::uint64_t bytes() const;
  std::string url_of(const Hub& hub, const RemoteFile& file) const;
};

// Whether a model at the hub can be called so: "Owner/Name", or "Name".
bool is_repository_name(const std::string& name);

// What running a model needs: configuration, tokenizer, template, weights; no other formats, no folders in
// it.
Repository find_repository(const Hub& hub, const std::string& name, const std::string& revision);

}  // namespace sluice::cli
