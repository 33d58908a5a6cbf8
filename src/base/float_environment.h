// The floating-point mode of kernels: denormals flushed to zero, rounding to nearest, no traps.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tern {

// Sets the mode for the current thread while it lives and puts the previous state back, bit for
// bit. Costs a few nanoseconds. Without it a kernel is up to 50 times slower on tiny activations.
class KernelFloatMode {
 public:
  KernelFloatMode() : saved_(read()) { write(kernel_mode(saved_)); }
  ~KernelFloatMode() { write(saved_); }
  KernelFloatMode(const KernelFloatMode&) = delete;
  KernelFloatMode& operator=(const KernelFloatMode&) = delete;

  // Sets the mode for the rest of the current thread's life.
  static void set_for_thread() { write(kernel_mode(read())); }

#if defined(__x86_64__)
  // MXCSR: all exceptions masked (0x1f80), flush to zero (0x8000), denormals are zero (0x40), round
  // to nearest.
  using State = std::uint32_t;
  static State read() { return _mm_getcsr(); }
  static State kernel_mode(State) { return 0x9fc0; }

 private:
  static void write(State state) { _mm_setcsr(state); }
#elif defined(__aarch64__)
  // FPCR: flush to zero is bit 24, rounding mode bits 22 and 23, trap enables bits 8 to 15.
  using State = std::uint64_t;
  static State read() {
    State state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    return state;
  }
  static State kernel_mode(State state) { return (state & ~State{0x00c0ff00}) | (State{1} << 24); }

 private:
  static void write(State state) { __asm__ volatile("msr fpcr, %0" : : "r"(state)); }
#else
  using State = std::uint32_t;
  static State read() { return 0; }
  static State kernel_mode(State state) { return state; }

 private:
  static void write(State) {}
#endif

  State saved_;
};

}  // namespace tern
