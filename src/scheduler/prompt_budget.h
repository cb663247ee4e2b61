// How many prompt tokens fit between two decode steps, so that running sequences go on at the wanted pace.
#pragma once

#include <cstdint>

namespace sluice::scheduler {

// Seconds as a line over tokens, and over the rows that attention reads for them where those are told; fitted
// to measurements, of which older ones count less and less.
class CostLine {
 public:
  void add(double tokens, double seconds, double rows = 0);
  bool known() const { return weight_ > 0; }
  double seconds(double tokens, double rows = 0) const;
  // What any number of tokens costs, and each of them.
  double base() const { return base_; }
  double slope() const { return slope_; }
  // The size of a measurement, on average, and whether they differ enough to tell base and slope apart.
  double size() const { return tokens_ / weight_; }
  bool varied() const { return varied_; }

 private:
  void fit();
  bool take(double base, double slope, double row);

  double weight_ = 0;
  // Sums and those of products.
  double tokens_ = 0, rows_ = 0, seconds_ = 0;
  double tokens_tokens_ = 0, tokens_rows_ = 0, rows_rows_ = 0;
  double tokens_seconds_ = 0, rows_seconds_ = 0;
  double base_ = 0;
  double slope_ = 0;  // above 0 once known
  double row_ = 0;
  bool varied_ = false;
};

// Prompt chunks are whole multiples of this, so that their states may be kept and reused.
inline constexpr std::int64_t kChunkUnit = 64;

struct PromptBudgetOptions {
  double target_seconds = 0.05;  // between two tokens of a running sequence
  std::int64_t most = 8192;      // tokens of one pass
};

class PromptBudget {
 public:
  explicit PromptBudget(const PromptBudgetOptions& options);

  // What was measured: a decode step of all running sequences, a pass over prompt tokens.
  void decoded(double seconds);
  // `rows`: those before each token, for all of them together.
  void prefilled(std::int64_t tokens, double seconds, double rows = 0);
  // From the end of one decode step to the end of the next, with prompt tokens read between the two.
  void turned(double seconds);

  // Tokens of prompts for the next turn, a multiple of kChunkUnit and at least one of it: prompts too must
  // go on. Without running sequences there is nobody to wait for. `past`: what the first of them has read.
  std::int64_t tokens(bool decoding, std::int64_t past = 0) const;
  // What reading so many tokens of a prompt takes; 0: nothing was measured yet.
  double seconds(std::int64_t tokens) const;

 private:
  bool fits(std::int64_t tokens, double past) const;

  PromptBudgetOptions options_;
  double decode_seconds_ = 0;
  // The share of the target that is planned for; the rest is for what takes longer than it should.
  double aim_ = 0.9;
  CostLine prefill_;
};

}  // namespace sluice::scheduler
