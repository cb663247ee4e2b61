// Experts that are split between nodes: rows are sent to the nodes with the chosen experts, and every
// choice's result is sent back. They are added here, in the order of choices, so the bits are those of one
// machine.
#pragma once

#include "experts/cache.h"
#include "layers/device.h"
#include "layers/moe/foresight.h"
#include "layers/moe/input.h"

namespace sluice::layers::moe {

class HostPart;

// Computes choices on other nodes.
class RemoteExperts {
 public:
  virtual ~RemoteExperts() = default;

  struct Question {
    int layer = 0;  // among those with experts
    ops::Phase phase = ops::Phase::automatic;
    ops::View h;       // [T,hidden], in host memory like the others
    ops::View chosen;  // I32 [T,k]
    ops::View out;     // [T,k,hidden]
    // Predicted experts of the next layer, so that nodes that read them from disk can start: I32 [T,k], or
    // absent.
    ops::View guessed = {};
  };
  // Requests the results of other nodes' experts without waiting.
  virtual void request(const Question& question) = 0;
  // Waits until all requested results are in `out`.
  virtual void await() = 0;
};

struct SpreadExperts {
  RemoteExperts* others = nullptr;
  std::int64_t own = 0;             // number of the layer's experts here, the first ones
  int layer = 0;                    // among those with experts
  experts::Cache* cache = nullptr;  // streams the own experts; null: they are in memory
  Foresight foresight = {};         // if some node streams its experts
  HostPart* host = nullptr;         // computes the own experts for a device; null: computed with the rest

  void forward(Device& dev, const Moe& moe, const Input& in) const;

 private:
  ops::View guess(Device& dev, const ops::View& x) const;
  // Writes the results of the own experts to `out`.
  void compute_own(Device& dev, const Moe& moe, const RemoteExperts::Question& question) const;
  // Calls compute(choices, experts) for the own experts of a question in host memory.
  template <class F>
  void with_own(const Moe& moe, const RemoteExperts::Question& question, F&& compute) const;
  void forward_beside(Device& dev, const Moe& moe, const Input& in, const RemoteExperts::Question& question,
                      const ops::View& shared_out) const;
};

}  // namespace sluice::layers::moe
