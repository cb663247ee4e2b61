// The kernel's side of a meeting of host and device.
#pragma once

#include <memory>

#include "backend/cuda/runtime/context.h"
#include "sluice/ops/meeting.h"

namespace sluice::backend::cuda {

// In pinned memory; each side writes a cache line of its own.
struct MeetingFlags {
  alignas(64) unsigned shown = 0;     // meetings that the device has begun
  unsigned guessed = 0;               // the last one that it has published a prediction for
  alignas(64) unsigned answered = 0;  // meetings that the host has answered; far ahead: abandoned
  unsigned mark = 0;                  // of the uploads that the device must wait for
  unsigned rows = 0;                  // number of rows that the host sends
};
// How far the host sets `answered` ahead of the device when it abandons a program.
inline constexpr unsigned kLeft = 1u << 30;

// Counts are in 4-byte words.
struct MeetingCall {
  MeetingFlags* flags = nullptr;       // pinned
  unsigned* begun = nullptr;           // device memory
  const unsigned* uploaded = nullptr;  // device memory: the last mark whose uploads are complete
  const unsigned* shown[2] = {};
  int shown_count[2] = {};
  unsigned* outbox = nullptr;  // pinned
  unsigned* raised = nullptr;  // the flag that says that the outbox is filled
  bool waits = true;           // for the answer
  unsigned* answer = nullptr;
  int answer_count = 0;
  const unsigned* inbox = nullptr;        // pinned
  unsigned* rows = nullptr;               // where to put rows
  int row_count = 0;                      // words per row
  const unsigned* row_numbers = nullptr;  // pinned
  const unsigned* row_inbox = nullptr;    // pinned
};

void launch_meeting(Context& context, const MeetingCall& call);
std::unique_ptr<ops::Meeting> make_meeting(Context& context, const ops::Meeting::Room& room);

}  // namespace sluice::backend::cuda
