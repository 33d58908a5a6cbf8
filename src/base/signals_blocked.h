// Threads that are started while one of these lives take no signals that are meant for the program.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace tern {

// While it lives, new threads start with all signals blocked that another thread can take: Ctrl+C
// is for the host program's threads. Faults stay deliverable.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
      sigdelset(&blocked, number);
    }
    ::pthread_sigmask(SIG_SETMASK, &blocked, &saved_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t saved_;
};

}  // namespace tern
