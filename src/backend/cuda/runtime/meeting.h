// A meeting as its kernel sees it.
#pragma once

#include <memory>

#include "backend/cuda/runtime/context.h"
#include "sluice/ops/meeting.h"

namespace sluice::backend::cuda {

// In pinned memory, a cache line for each side.
struct MeetingFlags {
  alignas(64) unsigned shown = 0;     // meetings that the device has begun
  unsigned guessed = 0;               // the last one that it has guessed for
  alignas(64) unsigned answered = 0;  // meetings that the host has answered; far ahead once it has left
  unsigned mark = 0;                  // of uploads that the device waits for
  unsigned rows = 0;                  // that the host gives
};
// How far ahead of the device the host counts that answers no more.
inline constexpr unsigned kLeft = 1u << 30;

// Counts are of words.
struct MeetingCall {
  MeetingFlags* flags = nullptr;       // pinned
  unsigned* begun = nullptr;           // device memory
  const unsigned* uploaded = nullptr;  // device memory: the last mark that arrived
  const unsigned* shown[2] = {};
  int shown_count[2] = {};
  unsigned* outbox = nullptr;  // pinned
  unsigned* raised = nullptr;  // the flag that says that it is there
  bool waits = true;           // for the answer
  unsigned* answer = nullptr;
  int answer_count = 0;
  const unsigned* inbox = nullptr;        // pinned
  unsigned* rows = nullptr;               // to put rows into
  int row_count = 0;                      // of a row
  const unsigned* row_numbers = nullptr;  // pinned
  const unsigned* row_inbox = nullptr;    // pinned
};

void launch_meeting(Context& context, const MeetingCall& call);
std::unique_ptr<ops::Meeting> make_meeting(Context& context, const ops::Meeting::Room& room);

}  // namespace sluice::backend::cuda
