// Signal handlers. What they touch has to be reachable without an argument: the only file-level
// state of the program.
#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <ctime>

#include "cli/cli_error.h"

namespace tern::cli {
namespace {

std::atomic<std::atomic<bool>*> cancel_flag{nullptr};
std::atomic<int> last_signal{0};
std::atomic<long> last_interrupt_ms{-1'000'000};
static_assert(std::atomic<long>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void on_signal(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const long ms = static_cast<long>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
  if (signal == SIGINT && ms - last_interrupt_ms.load() <= 2000) {
    // Ends the line of a bar, and colours. Nothing can be done about a failure here.
    if (isatty(STDERR_FILENO) == 1 && write(STDERR_FILENO, "\x1b[0m\n", 5) < 0)
      _exit(kExitInterrupted);
    _exit(kExitInterrupted);
  }
  if (signal == SIGINT) last_interrupt_ms.store(ms);
  last_signal.store(signal);
  if (std::atomic<bool>* flag = cancel_flag.load()) flag->store(true);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a read from a pipe that never ends has to come back.
  sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  cancel_flag.store(token_.flag());
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);
}

Interrupt::~Interrupt() {
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
  cancel_flag.store(nullptr);
}

int Interrupt::exit_code() const {
  return last_signal.load() == SIGTERM ? kExitTerminated : kExitInterrupted;
}

}  // namespace tern::cli
