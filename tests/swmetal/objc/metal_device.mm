// The device: what it answers about itself, buffers and queues. Libraries and pipelines are in
// categories beside it.
#include <cstdlib>
#include <cstring>

#include "metal_objects.h"

NSErrorDomain const MTLLibraryErrorDomain = @"MTLLibraryErrorDomain";
NSErrorDomain const MTLCommandBufferErrorDomain = @"MTLCommandBufferErrorDomain";
NSErrorDomain const MTLBinaryArchiveDomain = @"MTLBinaryArchiveDomain";

namespace {

constexpr NSUInteger kPage = 16384;  // of Apple's processors

// On a page boundary when it is at least a page; below, tight, so that the address sanitizer sees
// the byte behind it.
void* allocate(NSUInteger length) {
  void* bytes = nullptr;
  return posix_memalign(&bytes, length >= kPage ? kPage : 256, length) ? nullptr : bytes;
}

}  // namespace

SwmDevice* swm::device() {
  static SwmDevice* const instance = [SwmDevice new];
  return instance;
}

@implementation MTLArchitecture
- (NSString*)name {
  return _name;
}
- (void)dealloc {
  [_name release];
  [super dealloc];
}
SWM_COPY_IS_RETAIN
@end

@implementation SwmDevice
- (NSString*)name {
  return swm::ns(swm::control().device().name);
}
- (uint64_t)registryID {
  return 1;
}
- (MTLArchitecture*)architecture {
  MTLArchitecture* a = [[MTLArchitecture new] autorelease];
  a->_name = [swm::ns(swm::control().device().architecture) retain];
  return a;
}
- (BOOL)hasUnifiedMemory {
  return swm::control().device().has_unified_memory;
}
- (BOOL)isLowPower {
  return NO;
}
- (BOOL)isRemovable {
  return NO;
}
- (uint64_t)recommendedMaxWorkingSetSize {
  return swm::control().device().working_set;
}
- (NSUInteger)maxBufferLength {
  return swm::control().device().max_buffer;
}
- (NSUInteger)maxThreadgroupMemoryLength {
  return swm::kMaxGroupMemory;
}
- (MTLSize)maxThreadsPerThreadgroup {
  return MTLSizeMake(swm::kMaxThreads, swm::kMaxThreads, swm::kMaxThreads);
}
- (NSUInteger)currentAllocatedSize {
  return swm::control().allocated.load();
}
- (BOOL)supportsFamily:(MTLGPUFamily)family {
  const int apple = swm::control().device().apple_family;
  if (family > 1000 && family < 2000) return family <= 1000 + apple;
  if (family == MTLGPUFamilyMetal3) return apple >= 7;
  if (family == MTLGPUFamilyMetal4) return NO;  // its calls are not offered
  return family == MTLGPUFamilyMac2 || family <= MTLGPUFamilyCommon3;
}

- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  if (!length) swm::misuse("newBufferWithLength: 0 bytes");
  const bool fails = swm::control().fails(SWM_ALLOCATION);
  if (fails || swm::control().too_large(length) || length > self.maxBufferLength) return nil;
  void* bytes = allocate(length);
  if (!bytes) return nil;
  std::memset(bytes, 0xff, length);
  return [[SwmBuffer alloc] initWithBytes:bytes length:length options:options isOwner:true];
}
- (id<MTLBuffer>)newBufferWithBytes:(const void*)bytes
                             length:(NSUInteger)length
                            options:(MTLResourceOptions)options {
  if (options & MTLResourceStorageModePrivate)
    swm::misuse("newBufferWithBytes: a private buffer cannot be filled by the CPU");
  SwmBuffer* buffer = (SwmBuffer*)[self newBufferWithLength:length options:options];
  if (buffer) std::memcpy(buffer->_bytes, bytes, length);
  return buffer;
}
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void*)bytes
                                   length:(NSUInteger)length
                                  options:(MTLResourceOptions)options
                              deallocator:(void (^)(void*, NSUInteger))deallocator {
  if (!bytes || !length || reinterpret_cast<uintptr_t>(bytes) % kPage || length % kPage)
    swm::misuse("newBufferWithBytesNoCopy: memory and length are whole pages of 16 KiB");
  if (options & MTLResourceStorageModePrivate)
    swm::misuse("newBufferWithBytesNoCopy: the memory of a process is not private");
  if (swm::control().fails(SWM_ALLOCATION)) return nil;
  SwmBuffer* buffer = [[SwmBuffer alloc] initWithBytes:bytes
                                                length:length
                                               options:options
                                               isOwner:false];
  if (deallocator)
    buffer->_deallocator = (void (^)(void*, NSUInteger))_Block_copy((void*)deallocator);
  return buffer;
}

- (id<MTLCommandQueue>)newCommandQueue {
  return [self newCommandQueueWithMaxCommandBufferCount:64];
}
- (id<MTLCommandQueue>)newCommandQueueWithMaxCommandBufferCount:(NSUInteger)count {
  if (!count) swm::misuse("newCommandQueueWithMaxCommandBufferCount: 0");
  if (swm::control().fails(SWM_QUEUE)) return nil;
  SwmQueue* queue = [SwmQueue new];
  queue->_state = std::make_shared<swm::QueueState>();
  return queue;
}
@end

id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
  if (swm::control().is_absent()) return nil;
  return [swm::device() retain];
}

NSArray<id<MTLDevice>>* MTLCopyAllDevices(void) {
  @autoreleasepool {
    if (swm::control().is_absent()) return [[NSArray array] retain];
    return [[NSArray arrayWithObject:swm::device()] retain];
  }
}
