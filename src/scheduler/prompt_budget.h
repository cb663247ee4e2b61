// How many prompt tokens fit between two decode steps, so that running sequences keep the target pace.
#pragma once

#include <cstdint>

namespace sluice::scheduler {

// Seconds as a linear function of tokens, and of the rows that attention reads for them if given; fitted to
// measurements, of which older ones count less and less.
class CostLine {
 public:
  void add(double tokens, double seconds, double rows = 0);
  bool known() const { return weight_ > 0; }
  double seconds(double tokens, double rows = 0) const;
  // The fixed cost, and the cost per token.
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

// Prompt chunks are multiples of this, so that their states can be saved and reused.
inline constexpr std::int64_t kChunkUnit = 64;

struct PromptBudgetOptions {
  double target_seconds = 0.05;  // between two tokens of a running sequence
  std::int64_t most = 8192;      // tokens of one pass
};

class PromptBudget {
 public:
  explicit PromptBudget(const PromptBudgetOptions& options);

  // Reports a measurement: a decode step of all running sequences, a pass over prompt tokens.
  void decoded(double seconds);
  // `rows`: those before each token, for all of them together.
  void prefilled(std::int64_t tokens, double seconds, double rows = 0);
  // Reports the time from the end of one decode step to the end of the next, with prompt tokens in between.
  void turned(double seconds);

  // Prompt tokens for the next turn, a multiple of kChunkUnit and at least one unit, because prompts must
  // progress too. Without running sequences there is no limit. `past`: tokens done of the first prompt.
  std::int64_t tokens(bool decoding, std::int64_t past = 0) const;
  // Seconds for that many prompt tokens; 0: nothing has been measured yet.
  double seconds(std::int64_t tokens) const;

 private:
  bool fits(std::int64_t tokens, double past) const;

  PromptBudgetOptions options_;
  double decode_seconds_ = 0;
  // The share of the target to plan for; the rest is a margin for passes that take longer.
  double aim_ = 0.9;
  CostLine prefill_;
};

}  // namespace sluice::scheduler
