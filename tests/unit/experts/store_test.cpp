#include "experts/store.h"

#include "expert_file.h"

namespace sluice::experts {
namespace {

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
}

TEST(Store, ReadsAnExpertThatLiesTogetherAtOnce) {
  const ExpertFile file(true);
  const Store store(file.files(), {file.layer()});
  for (std::int64_t e = 0; e < ExpertFile::kExperts; ++e) EXPECT_EQ(store.pieces(0, e).size(), 1u);
}

TEST(Store, NamesAnExpertAndItsFile) {
  const ExpertFile file(true);
  const Store store(file.files(), {file.layer()});
  EXPECT_EQ(store.name(0, 3), "expert 3 of layer 7 ('" + file.path().string() + "')");
}

}  // namespace
}  // namespace sluice::experts
