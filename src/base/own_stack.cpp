#include "base/own_stack.h"

#include <pthread.h>

#include <exception>
#include <system_error>

#include "base/error.h"
#include "base/signals_blocked.h"

namespace tern {
namespace {

struct Call {
  const std::function<void()>& body;
  std::exception_ptr thrown;
};

void* run_call(void* argument) {
  auto& call = *static_cast<Call*>(argument);
  try {
    call.body();
  } catch (...) {
    call.thrown = std::current_exception();
  }
  return nullptr;
}

}  // namespace

void run_on_own_stack(std::size_t bytes, const std::function<void()>& body) {
  Call call{body, nullptr};
  pthread_attr_t attributes;
  pthread_t thread;
  int status = ::pthread_attr_init(&attributes);
  if (status == 0) {
    status = ::pthread_attr_setstacksize(&attributes, bytes);
    if (status == 0) {
      const SignalsBlocked blocked;  // signals are the caller's business
      status = ::pthread_create(&thread, &attributes, run_call, &call);
    }
    ::pthread_attr_destroy(&attributes);
  }
  if (status != 0) {
    throw fail(ErrorCode::kOutOfMemory, "no thread with a stack of {} bytes can be made: {}", bytes,
               std::generic_category().message(status));
  }
  ::pthread_join(thread, nullptr);
  if (call.thrown) std::rethrow_exception(call.thrown);
}

}  // namespace tern
