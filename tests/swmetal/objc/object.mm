// NSObject with real reference counts, and autorelease pools. Over-release and autorelease without
// a pool abort. Objects come from calloc, so the leak checker sees every missing release.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "live_objects.h"
#include "support.h"

// libobjc keeps its tables of classes for ever.
extern "C" const char* __lsan_default_suppressions() { return "leak:libobjc.so"; }

namespace {

thread_local std::vector<std::vector<id>> t_pools;

using Hook = void (*)(id, SEL);

// C++ members of an object: the compiler writes one constructing and one destroying method a class
// that has any.
void construct_members(id object, Class of) {
  static const SEL selector = sel_registerName(".cxx_construct");
  if (Class base = class_getSuperclass(of)) construct_members(object, base);
  if (!class_respondsToSelector(of, selector)) return;
  const auto hook = reinterpret_cast<Hook>(class_getMethodImplementation(of, selector));
  Class base = class_getSuperclass(of);
  if (base && class_respondsToSelector(base, selector) &&
      reinterpret_cast<Hook>(class_getMethodImplementation(base, selector)) == hook)
    return;  // inherited
  hook(object, selector);
}

void destroy_members(id object, Class of) {
  static const SEL selector = sel_registerName(".cxx_destruct");
  for (Hook last = nullptr; of && class_respondsToSelector(of, selector);
       of = class_getSuperclass(of)) {
    const auto hook = reinterpret_cast<Hook>(class_getMethodImplementation(of, selector));
    if (hook != last) hook(object, selector);
    last = hook;
  }
}

// Of objects that were freed a short while ago: a message to one says so instead of crashing.
[[maybe_unused]] void bury(id object) {
  constexpr unsigned kGraves = 4096;
  static std::atomic<void*> graves[kGraves];
  static std::atomic<unsigned> next{0};
  std::free(graves[next.fetch_add(1, std::memory_order_relaxed) % kGraves].exchange((void*)object));
}

[[maybe_unused]] Class zombie() {
  static const Class zombie = objc_getClass("SwmFreedObject");
  return zombie;
}

}  // namespace

__attribute__((objc_root_class))
@interface SwmFreedObject {
  Class isa;
}
@end

@implementation SwmFreedObject
- (void)doesNotRecognize:(SEL)selector {
  swm::misuse(std::string("over-release: ") + sel_getName(selector) +
              " is sent to an object that is freed");
}
@end

swm::LiveObjects& swm::live_objects() {
  static LiveObjects objects;
  return objects;
}

void swm::misuse(const std::string& what) {
  std::fprintf(stderr, "software Metal: misuse: %s\n", what.c_str());
  std::abort();
}

@implementation NSObject
+ (instancetype)alloc {
  // libobjc looks this up for a selector that is not there, and crashes where nobody has used it.
  [[maybe_unused]] static const SEL forward = sel_registerName("forward::");
  NSObject* object = (NSObject*)calloc(1, class_getInstanceSize(self));
  object->isa = self;
  object->_references = 1;
  construct_members(object, self);
  swm::live_objects().add((void*)self, 1);
  return object;
}
+ (instancetype)new {
  return [[self alloc] init];
}
+ (Class)class {
  return self;
}
- (instancetype)init {
  return self;
}
- (void)dealloc {
  swm::live_objects().add((void*)isa, -1);
  destroy_members(self, isa);
#if defined(SWM_KEEP_MODULES)
  std::free((void*)self);  // the sanitizers know freed objects better
#else
  isa = zombie();
  bury(self);
#endif
}
- (instancetype)retain {
  __atomic_fetch_add(&_references, 1, __ATOMIC_RELAXED);
  return self;
}
- (oneway void)release {
  const int before = __atomic_fetch_sub(&_references, 1, __ATOMIC_ACQ_REL);
  if (before == 1) [self dealloc];
  if (before < 1) swm::misuse(std::string("over-release of ") + class_getName(isa));
}
- (instancetype)autorelease {
  if (t_pools.empty())
    swm::misuse(std::string(class_getName(isa)) + " autoreleased with no pool in place");
  t_pools.back().push_back(self);
  return self;
}
- (NSUInteger)retainCount {
  return NSUInteger(__atomic_load_n(&_references, __ATOMIC_RELAXED));
}
- (instancetype)self {
  return self;
}
- (Class)class {
  return isa;
}
- (BOOL)isKindOfClass:(Class)kind {
  for (Class c = isa; c; c = class_getSuperclass(c))
    if (c == kind) return YES;
  return NO;
}
- (BOOL)respondsToSelector:(SEL)selector {
  return class_respondsToSelector(isa, selector);
}
- (BOOL)conformsToProtocol:(Protocol*)protocol {
  for (Class c = isa; c; c = class_getSuperclass(c))
    if (class_conformsToProtocol(c, protocol)) return YES;
  return NO;
}
- (BOOL)isEqual:(id)other {
  return self == other;
}
- (NSUInteger)hash {
  return NSUInteger(self);
}
- (NSString*)description {
  return [NSString stringWithUTF8String:class_getName(isa)];
}
- (id)copy {
  return [(id<NSCopying>)self copyWithZone:nullptr];
}
+ (void)doesNotRecognize:(SEL)selector {
  swm::misuse(std::string("class ") + class_getName(self) + " does not offer +" +
              sel_getName(selector));
}
// The runtime sends this for a selector that the class lacks.
- (void)doesNotRecognize:(SEL)selector {
  swm::misuse(std::string(class_getName(isa)) + " does not offer " + sel_getName(selector) +
              " (software Metal offers what its headers declare)");
}
@end

// @autoreleasepool is a pool object for the gcc runtime, and a push and a pop for the other one.
extern "C" void* objc_autoreleasePoolPush(void) {
  t_pools.emplace_back();
  return reinterpret_cast<void*>(t_pools.size());
}

extern "C" void objc_autoreleasePoolPop(void* token) {
  const size_t depth = reinterpret_cast<size_t>(token);
  while (t_pools.size() >= depth) {
    std::vector<id> objects;
    objects.swap(t_pools.back());  // releasing may autorelease again
    for (id object : objects) [object release];
    if (t_pools.back().empty()) t_pools.pop_back();
  }
}

@implementation NSAutoreleasePool
- (instancetype)init {
  _token = objc_autoreleasePoolPush();
  return self;
}
- (void)drain {
  objc_autoreleasePoolPop(_token);
  [super release];
}
- (oneway void)release {
  [self drain];
}
@end

// Blocks retain the objects that they capture.
extern "C" void swm_retain(const void* object) { [(id)object retain]; }
extern "C" void swm_release(const void* object) { [(id)object release]; }
