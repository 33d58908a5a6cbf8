// Buffers: page-aligned memory, filled with ff when new. No CPU pointer to private ones; freeing
// one that a command buffer uses is misuse.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "metal_objects.h"

SwmBuffer* swm::checked_buffer(id<MTLBuffer> buffer, const char* what) {
  if (!buffer) misuse(std::string(what) + ": nil buffer");
  if (![buffer isKindOfClass:[SwmBuffer class]]) misuse(std::string(what) + ": not a buffer");
  return (SwmBuffer*)buffer;
}

@implementation SwmBuffer
- (instancetype)initWithBytes:(void*)bytes
                       length:(NSUInteger)length
                      options:(MTLResourceOptions)options
                      isOwner:(bool)isOwner {
  _bytes = static_cast<char*>(bytes);
  _length = length;
  _options = options;
  _isOwner = isOwner;
  swm::control().allocated += length;
  return self;
}
- (void)dealloc {
  if (_inFlight.load()) swm::misuse("a buffer is deallocated while a command buffer uses it");
  swm::control().allocated -= _length;
  if (_isOwner) std::free(_bytes);
  if (_deallocator) {
    _deallocator(_bytes, _length);
    _Block_release((void*)_deallocator);
  }
  [_label release];
  [super dealloc];
}
- (NSUInteger)length {
  return _length;
}
- (void*)contents {
  return (_options & MTLResourceStorageModePrivate) ? nullptr : _bytes;
}
- (uint64_t)gpuAddress {
  return reinterpret_cast<uint64_t>(_bytes);
}
- (void)didModifyRange:(NSRange)range {
  if (!(_options & MTLResourceStorageModeManaged))
    swm::misuse("didModifyRange: the buffer is not managed");
  if (range.location > _length || range.length > _length - range.location)
    swm::misuse("didModifyRange: the range ends beyond the buffer");
}
- (MTLStorageMode)storageMode {
  return static_cast<MTLStorageMode>(_options >> 4 & 15);
}
- (MTLResourceOptions)resourceOptions {
  return _options;
}
- (NSUInteger)allocatedSize {
  return _length;
}
SWM_LABEL
SWM_DEVICE
@end
