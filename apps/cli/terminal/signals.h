// Handling of Ctrl-C and similar signals.
#pragma once

#include <exception>
#include <string>

namespace sluice::cli::terminal {

// Thrown after Ctrl-C, once work in progress has ended cleanly. The message says how.
class Interrupted : public std::exception {
 public:
  explicit Interrupted(std::string message = "interrupted") : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

// For the whole program: a file that grows beyond its limit is a failed write; a mapped file that is
// truncated gives a message on stderr and exit status 1.
void guard_against_signals();

// From now on SIGINT, SIGTERM and SIGHUP are recorded, and a second one ends the program.
void note_interrupts();
// The same for SIGINT, any number of times; blocking system calls, such as reading a line of input, return.
void note_every_interrupt();
// Raises SIGTERM once standard input is closed, as when the program at its other end ends in any way. Input
// is discarded until then.
void end_with_input();
// From now on changes of the terminal's size are recorded; blocking system calls return then too.
void note_resizes();
// Whether there was one since the last call.
bool was_resized();
bool interrupted();
void forget_interrupt();
// Throws Interrupted if an interrupt was recorded.
void stop_if_interrupted(const char* message = "interrupted");
// Ends the program by the recorded signal, so that its parent process sees it.
[[noreturn]] void die_of_interrupt();

}  // namespace sluice::cli::terminal
