// What host code needs that was built with automatic reference counting.
//
// The compiler refuses it for the gcc runtime, so such code is built for ObjFW's dialect: the same
// messages, ten small functions, and another version number in the module record, which libobjc4
// would refuse. Code that uses classes differs in nothing else; code that defines classes or has
// weak references is not covered.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

#include "support.h"

extern "C" {
extern void* _NSConcreteMallocBlock[];
extern void* _NSConcreteStackBlock[];
extern void* _NSConcreteGlobalBlock[];
}

namespace {

bool is_block(id object) {
  const void* isa = *(void**)(void*)object;
  return isa == _NSConcreteMallocBlock || isa == _NSConcreteStackBlock ||
         isa == _NSConcreteGlobalBlock;
}

}  // namespace

extern "C" {
id objc_retain(id object) {
  if (!object) return nil;
  return is_block(object) ? (id)_Block_copy((void*)object) : [object retain];
}
void objc_release(id object) {
  if (!object) return;
  if (is_block(object)) {
    _Block_release((void*)object);
  } else {
    [object release];
  }
}
id objc_autorelease(id object) { return [object autorelease]; }
id objc_retainAutorelease(id object) { return objc_autorelease(objc_retain(object)); }
id objc_autoreleaseReturnValue(id object) { return objc_autorelease(object); }
id objc_retainAutoreleaseReturnValue(id object) { return objc_retainAutorelease(object); }
id objc_retainAutoreleasedReturnValue(id object) { return objc_retain(object); }
id objc_unsafeClaimAutoreleasedReturnValue(id object) { return object; }
id objc_retainBlock(id object) { return (id)_Block_copy((void*)object); }
void objc_storeStrong(id* place, id value) {
  id old = *place;
  *place = objc_retain(value);
  objc_release(old);
}

struct SwmModuleRecord {
  unsigned long version, size;
  const char* name;
  void* symbols;
};

// Each object file hands its record to the runtime before main; this stands before libobjc's.
void __objc_exec_class(void* module) {
  constexpr unsigned long kVersion = 8;
  static const auto real = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_NEXT, "__objc_exec_class"));
  static SwmModuleRecord copies[256];  // the runtime keeps the record
  static std::atomic<unsigned> used{0};
  auto* record = static_cast<SwmModuleRecord*>(module);
  if (record->version > kVersion) {
    const unsigned n = used++;
    if (n >= 256) std::abort();
    copies[n] = {kVersion, sizeof(SwmModuleRecord), record->name, record->symbols};
    record = &copies[n];
  }
  real(record);
}
}
