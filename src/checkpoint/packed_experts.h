// Experts stored so that they can be read one at a time: the tensors of an expert are adjacent in a record
// that begins at a multiple of 4096 bytes of the file.
//
// There is one safetensors file per layer, with "<mlp>.packed_experts.records" U8 [experts, record bytes]
// followed by "<mlp>.packed_experts.fingerprints" U64 [experts]. A record holds values, scales and biases of
// gate_proj, up_proj and down_proj, each at a multiple of 64 bytes, padded with zeros to a multiple of 4096.
// The file's metadata describes under "packed_experts" how the three are quantised.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "sluice/ops/weight.h"

namespace sluice::checkpoint {

inline constexpr std::size_t kRecordAlignment = 4096;
inline constexpr std::string_view kPackedRecords = ".packed_experts.records";
inline constexpr std::string_view kPackedFingerprints = ".packed_experts.fingerprints";
inline constexpr std::string_view kPackedFormat = "packed_experts";  // the metadata's key
inline constexpr std::array<std::string_view, 3> kProjections = {"gate_proj", "up_proj", "down_proj"};

class RecordLayout {
 public:
  // From matrices [N,K] with their formats; their addresses do not matter.
  explicit RecordLayout(const std::array<ops::Weight, 3>& matrices);
  // From the metadata, for experts of these sizes; `where` names the file in messages.
  RecordLayout(const std::string& metadata, std::int64_t inner, std::int64_t hidden,
               const std::string& where);

  std::string metadata() const;
  std::size_t bytes() const { return bytes_; }
  // The matrices in order, in a record that begins at `record`.
  std::array<ops::Weight, 3> in(const std::byte* record) const;

 private:
  std::array<ops::Weight, 3> matrices_;  // data: offsets from the record's start
  std::size_t bytes_ = 0;
};

}  // namespace sluice::checkpoint
