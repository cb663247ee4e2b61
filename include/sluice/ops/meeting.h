// Synchronises a device and the host in the middle of a recorded program: the device publishes which experts
// it chose, the host answers with the slots that hold them, and the device continues. Neither interrupts its
// work, and a program remains one launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/ops/view.h"

namespace sluice::ops {

class Meeting {
 public:
  // The maximum of each in any meeting, in bytes.
  struct Room {
    std::size_t shown = 0;
    std::size_t guess = 0;
    std::size_t answer = 0;
    std::size_t rows = 0;
  };

  virtual ~Meeting() = default;

  // Ops of a program. The device publishes `chosen` and, if present, `inputs`, waits for send_slots() and
  // writes the slots to `places`. All are contiguous, and their sizes are multiples of 4 bytes.
  virtual void publish_and_await(const ConstView& chosen, const ConstView& inputs, const View& places) = 0;
  // The same as two ops, between which the device has time to predict its next choice.
  virtual void publish_choices(const ConstView& chosen, const ConstView& inputs) = 0;
  virtual void await_slots(const ConstView& guessed, const View& places) = 0;
  // The device waits for send_rows() and writes the rows to `out` [n,width].
  virtual void await_rows(const View& out) = 0;

  // The host calls the following while a program runs, in the order of its meetings.

  // Waits until the device publishes something: the chosen experts, followed by the inputs.
  virtual const std::byte* wait() = 0;
  // The prediction; between wait() and send_slots().
  virtual const std::byte* guess() = 0;
  // Copies to the device while the program runs. `from` is pinned and must not change until the device's next
  // meeting, or until finish_uploads().
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  // Marks the uploads up to now.
  virtual std::uint32_t mark() = 0;
  virtual void finish_uploads() = 0;
  // The device continues when the uploads up to `mark` are complete.
  virtual void send_slots(std::span<const std::int32_t> places, std::uint32_t mark) = 0;
  // Where to write the rows for await_rows(), contiguously.
  virtual std::byte* rows() = 0;
  virtual void send_rows(std::span<const std::int32_t> rows) = 0;
  // Lets the running program end without the host; its results are invalid.
  virtual void abandon() = 0;
};

}  // namespace sluice::ops
