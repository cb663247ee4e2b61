// Where experts lie in files, and where their tensors are once they are read into a slot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/integer_cast.h"
#include "experts/expert.h"

namespace sluice::experts {

// Alignment of direct reads: in the file, in memory and in length.
inline constexpr std::size_t kAlignment = 4096;

// A file mapped at `bytes`. Weights were bound to views into the mapping; nothing is read through it.
struct SourceFile {
  std::filesystem::path path;
  std::span<const std::byte> bytes;
};

// The experts of a layer, as bound.
struct LayerSource {
  std::int64_t layer = 0;  // its number in the model
  ops::ExpertWeights gate_proj;
  ops::ExpertWeights up_proj;
  ops::ExpertWeights down_proj;
  std::span<const std::byte> fingerprints;  // little-endian, 8 bytes per expert; empty: unknown
  std::int64_t first = 0;                   // the first one's number in the model

  std::int64_t experts() const { return gate_proj.shape()[0]; }
  Expert operator[](std::int64_t expert) const {
    return {gate_proj[expert], up_proj[expert], down_proj[expert]};
  }
};

// A range of a file and its place in the slot. `bytes` is a multiple of the alignment and may reach past the
// end of the file; `needed` of them must arrive.
struct Piece {
  int file = 0;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  std::size_t needed = 0;
  std::size_t at = 0;
};

// Adjacent tensors of an expert form one piece: an expert of a packed file is one read.
class Store {
 public:
  Store(std::vector<SourceFile> files, std::vector<LayerSource> layers);

  const std::vector<SourceFile>& files() const { return files_; }
  int layers() const { return to_int(layers_.size()); }
  const LayerSource& layer(int layer) const { return layers_[layer]; }
  // Room for any expert of the layer, a multiple of the alignment.
  std::size_t slot_bytes(int layer) const { return slot_bytes_[layer]; }

  std::vector<Piece> pieces(int layer, std::int64_t expert) const;
  // The expert in a slot that its pieces were read into.
  Expert in_slot(int layer, std::int64_t expert, const std::byte* slot) const;
  // The expected fingerprint() of the expert, or 0 if unknown.
  std::uint64_t fingerprint_of(int layer, std::int64_t expert) const;
  std::string name(int layer, std::int64_t expert) const;  // "expert 3 of layer 7 ('model.safetensors')"

 private:
  struct Range {
    int file;
    std::uint64_t begin;
    std::uint64_t end;
  };
  Range locate(const ops::ConstView& tensor) const;

  std::vector<SourceFile> files_;
  std::vector<LayerSource> layers_;
  std::vector<std::size_t> slot_bytes_;
};

}  // namespace sluice::experts
