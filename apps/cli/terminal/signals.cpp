#include "terminal/signals.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <thread>

namespace sluice::cli::terminal {

namespace {

volatile std::sig_atomic_t noted = 0;
volatile std::sig_atomic_t resized = 0;

void note_once(int signal) {
  noted = signal;
  std::signal(signal, SIG_DFL);
}

void note(int signal) {
  noted = signal;
}

void note_resize(int) {
  resized = 1;
}

// Restricted to what a signal handler may do. If several threads get here at once, only the first reports.
void report_lost_file(int) {
  static std::atomic_flag told = ATOMIC_FLAG_INIT;
  if (told.test_and_set())
    while (true) ::pause();  // until the first thread ends the process
  constexpr std::string_view kSentence =
      "sluice: a model file was cut off, or its disk failed, while it was read\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kSentence.data(), kSentence.size());
  _exit(1);
}

}  // namespace

void guard_against_signals() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGBUS, report_lost_file);
}

void note_interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) std::signal(signal, note_once);  // nohup's setting is kept
  }
}

void end_with_input() {
  std::thread([] {
    char ignored[256];
    ssize_t got = 0;
    do {
      pollfd input{STDIN_FILENO, POLLIN, 0};
      ::poll(&input, 1, -1);
      got = ::read(STDIN_FILENO, ignored, sizeof ignored);
    } while (got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN)));
    ::kill(::getpid(), SIGTERM);
  }).detach();
}

void note_every_interrupt() {
  struct sigaction action {};
  action.sa_handler = note;
  sigaction(SIGINT, &action, nullptr);
}

void note_resizes() {
  struct sigaction action {};
  action.sa_handler = note_resize;
  sigaction(SIGWINCH, &action, nullptr);
}

bool was_resized() {
  const bool was = resized != 0;
  resized = 0;
  return was;
}

bool interrupted() {
  return noted != 0;
}

void forget_interrupt() {
  noted = 0;
}

void stop_if_interrupted(const char* message) {
  if (interrupted()) throw Interrupted(message);
}

void die_of_interrupt() {
  const int signal = noted != 0 ? noted : SIGINT;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  _exit(1);  // in case the signal is blocked
}

}  // namespace sluice::cli::terminal
