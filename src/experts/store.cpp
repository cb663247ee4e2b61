#include "experts/store.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::experts {

namespace {

std::uint64_t round_down(std::uint64_t value) {
  return value / kAlignment * kAlignment;
}
std::uint64_t round_up(std::uint64_t value) {
  return round_down(value + kAlignment - 1);
}

}  // namespace

Store::Store(std::vector<SourceFile> files, std::vector<LayerSource> layers)
    : files_(std::move(files)), layers_(std::move(layers)) {
  for (int layer = 0; layer < this->layers(); ++layer) {
    std::size_t most = 0;
    for (std::int64_t e = 0; e < this->layer(layer).experts(); ++e) {
      const Piece last = pieces(layer, e).back();
      most = std::max(most, last.at + last.bytes);
    }
    slot_bytes_.push_back(most);
  }
}

Store::Range Store::locate(const ops::ConstView& tensor) const {
  const std::span<const std::byte> bytes = bytes_of(tensor);
  const auto not_before = std::greater_equal<>();
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::span<const std::byte> file = files_[i].bytes;
    if (!not_before(bytes.data(), file.data()) || not_before(bytes.data(), file.data() + file.size()))
      continue;
    const std::uint64_t begin = bytes.data() - file.data();
    return {to_int(i), begin, begin + bytes.size()};
  }
  fail(ErrorKind::internal, "an expert's tensor is in none of the {} files", files_.size());
}

std::vector<Piece> Store::pieces(int layer, std::int64_t expert) const {
  std::vector<Range> ranges;
  const Expert bound = this->layer(layer)[expert];
  for_each_tensor(bound, [&](const ops::ConstView& tensor) { ranges.push_back(locate(tensor)); });
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.file != b.file ? a.file < b.file : a.begin < b.begin;
  });
  std::vector<Piece> pieces;
  std::size_t at = 0;
  for (const Range& range : ranges) {
    if (!pieces.empty()) {
      Piece& last = pieces.back();
      const std::uint64_t end = last.offset + last.bytes;
      if (last.file == range.file && round_down(range.begin) <= end) {
        last.needed = std::max(last.needed, to_size(range.end - last.offset));
        last.bytes = round_up(last.needed);
        at = last.at + last.bytes;
        continue;
      }
    }
    const std::uint64_t offset = round_down(range.begin);
    const std::size_t needed = range.end - offset;
    pieces.push_back({range.file, offset, round_up(needed), needed, at});
    at += pieces.back().bytes;
  }
  return pieces;
}

Expert Store::in_slot(int layer, std::int64_t expert, const std::byte* slot) const {
  const std::vector<Piece> pieces = this->pieces(layer, expert);
  Expert placed = this->layer(layer)[expert];
  for_each_tensor(placed, [&](ops::ConstView& tensor) {
    const Range range = locate(tensor);
    const auto piece = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& p) {
      return p.file == range.file && p.offset <= range.begin && range.end <= p.offset + p.bytes;
    });
    tensor.data = slot + piece->at + (range.begin - piece->offset);
  });
  return placed;
}

std::uint64_t Store::fingerprint_of(int layer, std::int64_t expert) const {
  const auto known = this->layer(layer).fingerprints;
  std::uint64_t value = 0;
  if (!known.empty()) std::memcpy(&value, known.data() + to_size(expert) * sizeof(value), sizeof(value));
  return value;
}

std::string Store::name(int layer, std::int64_t expert) const {
  const Range place = locate(this->layer(layer)[expert].gate_proj.values);
  return fmt::format("expert {} of layer {} ('{}')", this->layer(layer).first + expert,
                     this->layer(layer).layer, files_[place.file].path.string());
}

}  // namespace sluice::experts
