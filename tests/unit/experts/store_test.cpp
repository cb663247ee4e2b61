#include "experts/store.h"

#include "expert_file.h"

namespace sluice::experts {
namespace {

// Reads the pieces of each expert, whose number is given, as a reader does: the expert in the slot is the one
// in the file.
void expect_whole_experts(const ExpertFile& file, std::size_t pieces_each) {
  const Store store(file.files(), {file.layer()});
  const std::span<const std::byte> bytes = file.files()[0].bytes;
  for (std::int64_t e = 0; e < ExpertFile::kExperts; ++e) {
    const auto pieces = store.pieces(0, e);
    EXPECT_EQ(pieces.size(), pieces_each) << "of expert " << e;
    std::vector<std::byte> slot(store.slot_bytes(0));
    for (const Piece& piece : pieces) {
      ASSERT_LE(piece.offset + piece.needed, bytes.size());
      const auto source = bytes.subspan(piece.offset, piece.needed);
      std::ranges::copy(source, std::span(slot).subspan(piece.at, piece.bytes).begin());
    }
    EXPECT_TRUE(file.same(e, store.in_slot(0, e, slot.data()))) << "expert " << e;
  }
}

TEST(Store, ReadsStacksInOnePieceAMatrix) {
  const ExpertFile file(false);
  const Store store(file.files(), {file.layer()});
  for (std::int64_t e = 0; e < ExpertFile::kExperts; ++e) {
    const auto pieces = store.pieces(0, e);
    ASSERT_EQ(pieces.size(), 3u);
    for (const Piece& piece : pieces) {
      EXPECT_EQ(piece.offset % kAlignment, 0u);
      EXPECT_EQ(piece.bytes % kAlignment, 0u);
      EXPECT_EQ(piece.at % kAlignment, 0u);
      EXPECT_LE(piece.needed, piece.bytes);
      EXPECT_LE(piece.at + piece.bytes, store.slot_bytes(0));
    }
  }
  expect_whole_experts(file, 3);
}

TEST(Store, ReadsAContiguousExpertAtOnce) {
  expect_whole_experts(ExpertFile(true), 1);
}

TEST(Store, NamesAnExpertAndItsFile) {
  const ExpertFile file(true);
  const Store store(file.files(), {file.layer()});
  EXPECT_EQ(store.name(0, 3), "expert 3 of layer 7 ('" + file.path().string() + "')");
}

}  // namespace
}  // namespace sluice::experts
