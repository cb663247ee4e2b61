#include "text/unicode.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace sluice::text {
namespace {

#include "text/unicode_tables.inc"

constexpr int kClassBits = 9;
constexpr std::uint32_t kClassMask = (1u << kClassBits) - 1;

// The compositions in the table, sorted by pair for lookup.
std::vector<const Decomposition*> sorted_compositions() {
  std::vector<const Decomposition*> sorted;
  for (const Decomposition& d : kDecompositions)
    if (d.composes) sorted.push_back(&d);
  std::sort(sorted.begin(), sorted.end(), [](const Decomposition* a, const Decomposition* b) {
    return a->first != b->first ? a->first < b->first : a->second < b->second;
  });
  return sorted;
}

}  // namespace

const CharClasses& CharClasses::instance() {
  static const CharClasses classes;
  return classes;
}

CharClasses::CharClasses() {
  for (std::size_t run = 0; run < std::size(kClassRuns); ++run) {
    const std::size_t begin = kClassRuns[run] >> kClassBits;
    const std::size_t end = run + 1 < std::size(kClassRuns) ? kClassRuns[run + 1] >> kClassBits : bmp_.size();
    for (std::size_t c = begin; c < std::min(end, bmp_.size()); ++c) bmp_[c] = kClassRuns[run] & kClassMask;
  }
}

std::uint16_t CharClasses::search(char32_t c) {
  const auto* run =
      std::upper_bound(std::begin(kClassRuns), std::end(kClassRuns), c << kClassBits | kClassMask);
  return *std::prev(run) & kClassMask;
}

const Decomposition* decomposition(char32_t c) {
  const auto* found =
      std::lower_bound(std::begin(kDecompositions), std::end(kDecompositions), c,
                       [](const Decomposition& d, char32_t value) { return d.code_point < value; });
  return found != std::end(kDecompositions) && found->code_point == c ? found : nullptr;
}

char32_t composition(char32_t first, char32_t second) {
  static const std::vector<const Decomposition*> sorted = sorted_compositions();
  const auto found =
      std::lower_bound(sorted.begin(), sorted.end(), first, [second](const Decomposition* d, char32_t value) {
        return d->first != value ? d->first < value : d->second < second;
      });
  const bool exact = found != sorted.end() && (*found)->first == first && (*found)->second == second;
  return exact ? (*found)->code_point : 0;
}

int combining_class(char32_t c) {
  const auto* found = std::lower_bound(std::begin(kCombining), std::end(kCombining), c << 8);
  return found != std::end(kCombining) && *found >> 8 == c ? static_cast<int>(*found & 0xff) : 0;
}

}  // namespace sluice::text
