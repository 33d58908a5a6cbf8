// What the sanitizers must be told about fibers. Empty without them.
//
// Thread sanitizer (SWM_TSAN): the KERNELS are built with -fsanitize=thread and the executor is
// not. Each GPU thread is a fiber of the sanitizer, switched to without synchronisation, so all of
// them count as concurrent; only barriers order memory, through the calls below.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SWM_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SWM_ASAN 1
#endif

#if defined(SWM_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(SWM_TSAN)
extern "C" {
void* __tsan_get_current_fiber(void);
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace swm::sanitizers {

#if defined(SWM_TSAN)
inline constexpr bool kThreads = true;
inline void* current_fiber() { return __tsan_get_current_fiber(); }
inline void* create_fiber() { return __tsan_create_fiber(0); }
inline void destroy_fiber(void* fiber) { __tsan_destroy_fiber(fiber); }
inline void switch_to(void* fiber) { __tsan_switch_to_fiber(fiber, 1 /* no synchronisation */); }
// What the fiber did comes before what the host does from now on.
inline void join(void* fiber, void* host) {
  __tsan_switch_to_fiber(fiber, 1);
  __tsan_switch_to_fiber(host, 0 /* with synchronisation */);
}
inline void acquire(void* address) { __tsan_acquire(address); }
inline void release(void* address) { __tsan_release(address); }
#else
inline constexpr bool kThreads = false;
inline void* current_fiber() { return nullptr; }
inline void* create_fiber() { return nullptr; }
inline void destroy_fiber(void*) {}
inline void switch_to(void*) {}
inline void join(void*, void*) {}
inline void acquire(void*) {}
inline void release(void*) {}
#endif

#if defined(SWM_ASAN)
// save: where the stack that is left keeps its state; nullptr: it will not be resumed.
inline void leave_stack(void** save, const void* to_bottom, std::size_t to_bytes) {
  __sanitizer_start_switch_fiber(save, to_bottom, to_bytes);
}
inline void enter_stack(void* saved, const void** from_bottom, std::size_t* from_bytes) {
  __sanitizer_finish_switch_fiber(saved, from_bottom, from_bytes);
}
inline void unpoison(void* at, std::size_t bytes) { __asan_unpoison_memory_region(at, bytes); }
#else
inline void leave_stack(void**, const void*, std::size_t) {}
inline void enter_stack(void*, const void**, std::size_t*) {}
inline void unpoison(void*, std::size_t) {}
#endif

}  // namespace swm::sanitizers
