// What tests tell the emulator, beside Metal's own interface: orders, injected faults, properties
// of the device, counts. C functions for any thread; the SWM_* variables set the same at start.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Forgets faults and counts, finds the device again, and reads the SWM_* variables anew.
void swm_reset(void);

enum swm_order { SWM_ORDER_FORWARD = 0, SWM_ORDER_REVERSE = 1, SWM_ORDER_RANDOM = 2 };
void swm_set_order(enum swm_order order, uint64_t seed);
enum swm_order swm_get_order(void);
void swm_set_workers(unsigned workers);  // OS threads of a dispatch; 0: by itself
void swm_set_strict(int strict);         // 0: active-lane semantics where strict mode fails

// Things that happen, and can be made to fail.
enum swm_event {
  SWM_ALLOCATION,      // a buffer; fails as nil
  SWM_LIBRARY,         // from source, data or URL; fails with an NSError
  SWM_FUNCTION,        // fails as nil, with an NSError where there is one
  SWM_PIPELINE,        // fails with an NSError
  SWM_QUEUE,           // fails as nil
  SWM_COMMAND_BUFFER,  // its creation; fails as nil
  SWM_COMMIT,          // its run; fails as status Error with the code of swm_set_commit_error
  SWM_ARCHIVE,         // creation, addition or serialisation of a binary archive
  SWM_COMPILE,         // counted only: a pipeline that no archive had
  SWM_DISPATCH,        // counted only
  SWM_EVENTS
};
// The n-th event from now on fails (1: the next one), once. 0: none.
void swm_fail_nth(enum swm_event event, uint64_t n);
uint64_t swm_count(enum swm_event event);  // since the start or the last reset

void swm_set_no_device(int absent);                   // MTLCreateSystemDefaultDevice returns nil
void swm_set_fail_allocations_above(uint64_t bytes);  // one larger fails; 0: none
// Every buffer, queue, library and pipeline fails from now on, and every command buffer ends with
// MTLCommandBufferErrorDeviceRemoved.
void swm_lose_device(void);
void swm_set_commit_error(long code, const char* text);  // default: MTLCommandBufferErrorInternal

// What the device answers. The strings are copied.
struct swm_device {
  const char* name;  // "Software Metal (test only)"
  const char* architecture;
  int apple_family;  // 7: supports MTLGPUFamilyApple7 and older
  int has_unified_memory;
  uint64_t recommended_working_set;
  uint64_t max_buffer_length;
};
void swm_set_device(const struct swm_device* device);  // null: the default again

// Objects that are alive: of one class ("SwmBuffer", "NSString"), or of all for null.
uint64_t swm_live_objects(const char* class_name);

#ifdef __cplusplus
}
#endif
