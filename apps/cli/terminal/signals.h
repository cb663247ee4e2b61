// Ctrl-C and its kin, as commands see them.
#pragma once

#include <exception>
#include <string>

namespace sluice::cli {

// Ctrl-C, after what had begun was brought to an end. The message says what became of it.
class Interrupted : public std::exception {
 public:
  explicit Interrupted(std::string message = "interrupted") : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

// For the whole program: a file that grows beyond its limit is a failed write, a mapped file that is cut off
// a sentence on stderr and the exit status 1.
void guard_against_signals();

// From now on SIGINT, SIGTERM and SIGHUP are noted, and a second one ends the program.
void note_interrupts();
// The same for SIGINT, any number of times; system calls that wait, such as for a line of input, return.
void note_every_interrupt();
// SIGTERM to this process once the standard input is closed, as it is when the program at its other end is
// gone, however it ended. What is read meanwhile is forgotten.
void end_with_input();
// From now on it is noted when the terminal's size changes; system calls that wait return then too.
void note_resizes();
// Whether one was noted since this was asked last.
bool was_resized();
bool interrupted();
void forget_interrupt();
// Throws Interrupted where one was noted.
void stop_if_interrupted(const char* message = "interrupted");
// Ends the program by the signal that was noted, so that whoever waits for it knows.
[[noreturn]] void die_of_interrupt();

}  // namespace sluice::cli
