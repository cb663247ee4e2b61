// Experts of which each of several nodes holds some: rows go to those that hold what was chosen, and every
// choice's result comes back. They are added here, in the order of choices, so the bits are those of one
// machine.
#pragma once

#include "experts/cache.h"
#include "layers/device.h"
#include "layers/moe/foresight.h"
#include "layers/moe/input.h"

namespace sluice::layers::moe {

class Choices;
struct ExpertSupply;
class HostPart;

// Choices whose results come from elsewhere.
class RemoteExperts {
 public:
  virtual ~RemoteExperts() = default;

  struct Question {
    int layer = 0;  // among those with experts
    ops::Phase phase = ops::Phase::automatic;
    ops::View h;       // [T,hidden], in host memory like the others
    ops::View chosen;  // I32 [T,k]
    ops::View out;     // [T,k,hidden]
    // Experts of the next layer that its tokens may choose, so that who reads them from a disk begins: I32
    // [T,k], or absent.
    ops::View guessed = {};
  };
  // Asks for what is held elsewhere, and does not wait.
  virtual void request(const Question& question) = 0;
  // Waits until all that was asked for is in `out`.
  virtual void await() = 0;
};

struct SpreadExperts {
  RemoteExperts* others = nullptr;
  std::int64_t own = 0;             // the first so many of the layer are here
  int layer = 0;                    // among those with experts
  experts::Cache* cache = nullptr;  // that reads the own ones as they are needed; absent: they are in memory
  Foresight foresight = {};         // where some node reads them as they are needed
  HostPart* host = nullptr;  // computes the own ones for a device; absent: they are computed where all is

  void forward(Device& dev, const Moe& moe, const Input& in) const;

 private:
  ops::View guess(Device& dev, const ops::View& x) const;
  // Puts the results of the own experts into `out`.
  void compute_own(Device& dev, const Moe& moe, const RemoteExperts::Question& question) const;
  // compute(choices, experts) for the own ones of a question in host memory.
  template <class F>
  void with_own(const Moe& moe, const RemoteExperts::Question& question, F&& compute) const;
  void forward_beside(Device& dev, const Moe& moe, const Input& in, const RemoteExperts::Question& question,
                      const ops::View& shared_out) const;
};

}  // namespace sluice::layers::moe
