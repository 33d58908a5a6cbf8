// The blocks runtime: copying of blocks and of __block variables. Debian's library lacks a call
// that clang's blocks need, so that copied blocks would not retain what they capture.
#include <cstdlib>
#include <cstring>

extern "C" {
void* _NSConcreteStackBlock[32];
void* _NSConcreteMallocBlock[32];
void* _NSConcreteGlobalBlock[32];
void swm_retain(const void* object);
void swm_release(const void* object);
void* _Block_copy(const void* block);
void _Block_release(const void* block);
void _Block_object_assign(void* to, const void* object, int flags);
void _Block_object_dispose(const void* object, int flags);
}

namespace {

enum Flags : int {
  kCountMask = 0xffff,
  kOnHeap = 1 << 24,
  kHasHelpers = 1 << 25,
  kGlobal = 1 << 28,
  // of captured fields
  kObject = 3,
  kBlock = 7,
  kByReference = 8,
  kByReferenceCaller = 128,
};

struct Descriptor {
  unsigned long reserved, size;
  void (*copy)(void*, const void*);
  void (*dispose)(const void*);
};

struct Block {
  void* isa;
  int flags, reserved;
  void* invoke;
  Descriptor* descriptor;
};

struct Variable {  // a __block variable
  void* isa;
  Variable* forward;
  int flags;
  unsigned size;
  void (*copy)(void*, void*);
  void (*dispose)(void*);
};

void retain(int& flags) { __atomic_fetch_add(&flags, 1, __ATOMIC_RELAXED); }
bool release_last(int& flags) {
  return (__atomic_fetch_sub(&flags, 1, __ATOMIC_ACQ_REL) & kCountMask) == 1;
}

Variable* copy_variable(Variable* v) {
  v = v->forward;
  if (v->flags & kOnHeap) {
    retain(v->flags);
    return v;
  }
  auto* copy = static_cast<Variable*>(std::malloc(v->size));
  std::memcpy(static_cast<void*>(copy), v, v->size);
  copy->flags = (v->flags & ~kCountMask) | kOnHeap | 2;  // this block's and the stack's
  copy->forward = v->forward = copy;
  if (v->flags & kHasHelpers) v->copy(copy, v);
  return copy;
}

void release_variable(Variable* v) {
  v = v->forward;
  if (!(v->flags & kOnHeap) || !release_last(v->flags)) return;
  if (v->flags & kHasHelpers) v->dispose(v);
  std::free(v);
}

}  // namespace

void* _Block_copy(const void* block) {
  auto* b = static_cast<Block*>(const_cast<void*>(block));
  if (!b || (b->flags & kGlobal)) return b;
  if (b->flags & kOnHeap) {
    retain(b->flags);
    return b;
  }
  auto* copy = static_cast<Block*>(std::malloc(b->descriptor->size));
  std::memcpy(static_cast<void*>(copy), b, b->descriptor->size);
  copy->isa = _NSConcreteMallocBlock;
  copy->flags = (b->flags & ~kCountMask) | kOnHeap | 1;
  if (copy->flags & kHasHelpers) b->descriptor->copy(copy, b);
  return copy;
}

void _Block_release(const void* block) {
  auto* b = static_cast<Block*>(const_cast<void*>(block));
  if (!b || !(b->flags & kOnHeap) || !release_last(b->flags)) return;
  if (b->flags & kHasHelpers) b->descriptor->dispose(b);
  std::free(b);
}

void _Block_object_assign(void* to, const void* object, int flags) {
  const void* value = object;
  if (flags & kByReferenceCaller) {
    // the variable's own field: neither copied nor retained
  } else if (flags & kByReference) {
    value = copy_variable(static_cast<Variable*>(const_cast<void*>(object)));
  } else if ((flags & kBlock) == kBlock) {
    value = _Block_copy(object);
  } else {
    swm_retain(object);
  }
  *static_cast<const void**>(to) = value;
}

void _Block_object_dispose(const void* object, int flags) {
  if (flags & kByReferenceCaller) return;
  if (flags & kByReference) {
    release_variable(static_cast<Variable*>(const_cast<void*>(object)));
  } else if ((flags & kBlock) == kBlock) {
    _Block_release(object);
  } else {
    swm_release(object);
  }
}
