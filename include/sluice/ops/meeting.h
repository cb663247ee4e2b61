// Where a device meets the host in the middle of a program: the device publishes what it chose, the host
// answers with the slots that hold it, and the device goes on. Neither leaves what it runs, and a program
// stays one launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/ops/view.h"

namespace sluice::ops {

class Meeting {
 public:
  // The most of each that any meeting takes, in bytes.
  struct Room {
    std::size_t shown = 0;
    std::size_t guess = 0;
    std::size_t answer = 0;
    std::size_t rows = 0;
  };

  virtual ~Meeting() = default;

  // Ops of a program. The device publishes `chosen` and, where present, `inputs`, waits for send_slots() and
  // puts it into `places`. All are contiguous, in whole words of 4 bytes.
  virtual void publish_and_await(const ConstView& chosen, const ConstView& inputs, const View& places) = 0;
  // The same in two ops, between which the device has time to guess what it will choose next.
  virtual void publish_choices(const ConstView& chosen, const ConstView& inputs) = 0;
  virtual void await_slots(const ConstView& guessed, const View& places) = 0;
  // The device waits for send_rows() and puts the rows into those of `out` [n,width].
  virtual void await_rows(const View& out) = 0;

  // What the host does while a program runs, in the order of its meetings.
  // Waits until the device publishes something: what is chosen, and the inputs right behind it.
  virtual const std::byte* wait() = 0;
  // After wait() and before send_slots(): the guess.
  virtual const std::byte* guess() = 0;
  // Copies to the device beside the program. `from` is pinned and stays as it is until the device has met the
  // host once more, or until finish_uploads().
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  // Names what was uploaded up to now.
  virtual std::uint32_t mark() = 0;
  virtual void finish_uploads() = 0;
  // The device goes on when what `mark` names is there.
  virtual void send_slots(std::span<const std::int32_t> places, std::uint32_t mark) = 0;
  // Where the rows for await_rows() are to be written, one behind the other.
  virtual std::byte* rows() = 0;
  virtual void send_rows(std::span<const std::int32_t> rows) = 0;
  // Lets the program that runs go to its end without the host; what it computes is void.
  virtual void abandon() = 0;
};

}  // namespace sluice::ops
