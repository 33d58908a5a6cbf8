// Compute and blit encoders: they check what Metal's validation layer would check, and record.
#include <algorithm>
#include <cstring>
#include <limits>

#include "metal_objects.h"

namespace {

using Bytes = std::shared_ptr<const std::vector<char>>;

// What one dispatch needs while it waits to run.
struct Recorded {
  swm::Dispatch dispatch;
  std::shared_ptr<const swm::Function> function;
  std::vector<Bytes> bytes;

  bool run(std::string& error) {
    swm::control().count(SWM_DISPATCH);
    return swm::run(dispatch, swm::control().options(), error);
  }
};

swm_dim dim(MTLSize size, const char* what) {
  for (const NSUInteger n : {size.width, size.height, size.depth}) {
    if (!n) swm::misuse(std::string(what) + ": a size of 0");
    if (n > std::numeric_limits<unsigned>::max()) swm::misuse(std::string(what) + ": too large");
  }
  return {unsigned(size.width), unsigned(size.height), unsigned(size.depth)};
}

void check_range(SwmBuffer* buffer, NSUInteger offset, NSUInteger bytes, const char* what) {
  if (offset > buffer->_length || bytes > buffer->_length - offset)
    swm::misuse(std::string(what) + ": " + std::to_string(bytes) + " bytes at offset " +
                std::to_string(offset) + " of a buffer of " + std::to_string(buffer->_length));
}

}  // namespace

@interface SwmEncoder : NSObject <MTLCommandEncoder> {
 @public
  SwmCommandBuffer* _commandBuffer;
  int _number;
  bool _isConcurrent, _isEnded;
  NSString* _label;
}
@end

@implementation SwmEncoder
- (void)openOn:(SwmCommandBuffer*)commandBuffer concurrent:(bool)concurrent {
  [commandBuffer checkEncoding];
  _commandBuffer = [commandBuffer retain];
  _number = [commandBuffer nextEncoder];
  _isConcurrent = concurrent;
  commandBuffer->_isEncoding = true;
}
- (void)checkOpen {
  if (_isEnded) swm::misuse("an encoder is used after endEncoding");
}
- (void)record:(std::function<bool(std::string&)>)run barrier:(bool)barrier {
  _commandBuffer->_operations.push_back(
      {std::move(run), _number, _isConcurrent, barrier, _label ? _label.UTF8String : ""});
}
- (void)endEncoding {
  [self checkOpen];
  _isEnded = true;
  _commandBuffer->_isEncoding = false;
}
- (void)insertDebugSignpost:(NSString*)text {
  (void)text;
  [self checkOpen];
}
- (void)pushDebugGroup:(NSString*)text {
  (void)text;
  [self checkOpen];
}
- (void)popDebugGroup {
  [self checkOpen];
}
- (void)dealloc {
  if (!_isEnded) swm::misuse("an encoder is deallocated without endEncoding");
  [_commandBuffer release];
  [_label release];
  [super dealloc];
}
SWM_LABEL
SWM_DEVICE
@end

@interface SwmComputeEncoder : SwmEncoder <MTLComputeCommandEncoder> {
  SwmPipeline* _pipeline;
  swm_args _args;
  SwmBuffer* _buffers[SWM_ARGUMENTS];
  Bytes _bytes[SWM_ARGUMENTS];
}
@end

@implementation SwmComputeEncoder
- (void)dealloc {
  [_pipeline release];
  [super dealloc];
}
- (MTLDispatchType)dispatchType {
  return _isConcurrent ? MTLDispatchTypeConcurrent : MTLDispatchTypeSerial;
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
  [self checkOpen];
  if (!state) swm::misuse("setComputePipelineState: nil");
  [state retain];
  [_pipeline release];
  _pipeline = (SwmPipeline*)state;
}
- (void)checkIndex:(NSUInteger)index {
  [self checkOpen];
  if (index >= SWM_ARGUMENTS) swm::misuse("an argument index above 30: " + std::to_string(index));
}
- (void)bind:(SwmBuffer*)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  if (buffer && offset >= buffer->_length)
    swm::misuse("an offset of " + std::to_string(offset) + " beyond a buffer of " +
                std::to_string(buffer->_length) + " bytes");
  if (offset % 4) swm::misuse("an offset that is not a multiple of 4: " + std::to_string(offset));
  _buffers[index] = buffer;
  _bytes[index].reset();
  _args.buffer[index] = buffer ? buffer->_bytes + offset : nullptr;
  _args.buffer_bytes[index] = buffer ? buffer->_length - offset : 0;
}
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  [self checkIndex:index];
  SwmBuffer* b = buffer ? swm::checked_buffer(buffer, "setBuffer") : nil;
  [self bind:b offset:offset atIndex:index];
  if (b) [_commandBuffer use:b];
}
- (void)setBufferOffset:(NSUInteger)offset atIndex:(NSUInteger)index {
  [self checkIndex:index];
  if (!_buffers[index]) swm::misuse("setBufferOffset: no buffer at " + std::to_string(index));
  [self bind:_buffers[index] offset:offset atIndex:index];
}
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
  [self checkIndex:index];
  if (!bytes || !length || length > 4096)
    swm::misuse("setBytes: 1 to 4096 bytes, not " + std::to_string(length));
  const char* from = static_cast<const char*>(bytes);
  _buffers[index] = nil;
  _bytes[index] = std::make_shared<const std::vector<char>>(from, from + length);
  _args.buffer[index] = const_cast<char*>(_bytes[index]->data());
  _args.buffer_bytes[index] = length;
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  [self checkIndex:index];
  if (length % 16)
    swm::misuse("threadgroup memory of " + std::to_string(length) +
                " bytes, which is not a multiple of 16");
  _args.group_bytes[index] = length;
}
- (std::shared_ptr<Recorded>)recorded:(swm_dim)group {
  [self checkOpen];
  if (!_pipeline) swm::misuse("a dispatch without a pipeline");
  if (NSUInteger(group.x) * group.y * group.z > _pipeline->_maxThreads)
    swm::misuse("a threadgroup of " + std::to_string(NSUInteger(group.x) * group.y * group.z) +
                " threads; the pipeline allows " + std::to_string(_pipeline->_maxThreads));
  auto r = std::make_shared<Recorded>();
  r->function = _pipeline->_function;
  r->bytes.assign(_bytes, _bytes + SWM_ARGUMENTS);
  r->dispatch.module = r->function->library->module;
  r->dispatch.kernel = r->function->kernel;
  r->dispatch.constants = &r->function->constants;
  r->dispatch.args = _args;
  r->dispatch.group = group;
  return r;
}
- (void)dispatchThreads:(MTLSize)grid threadsPerThreadgroup:(MTLSize)threads {
  auto r = [self recorded:dim(threads, "threadsPerThreadgroup")];
  r->dispatch.grid = dim(grid, "dispatchThreads");
  [self record:[r](std::string& error) { return r->run(error); } barrier:false];
}
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)threads {
  dim(groups, "dispatchThreadgroups");
  [self dispatchThreads:MTLSizeMake(groups.width * threads.width, groups.height * threads.height,
                                    groups.depth * threads.depth)
      threadsPerThreadgroup:threads];
}
- (void)dispatchThreadgroupsWithIndirectBuffer:(id<MTLBuffer>)buffer
                          indirectBufferOffset:(NSUInteger)offset
                         threadsPerThreadgroup:(MTLSize)threads {
  auto r = [self recorded:dim(threads, "threadsPerThreadgroup")];
  SwmBuffer* b = swm::checked_buffer(buffer, "an indirect dispatch");
  if (offset % 4) swm::misuse("an indirect offset that is not a multiple of 4");
  check_range(b, offset, 3 * sizeof(uint32_t), "an indirect dispatch");
  [_commandBuffer use:b];
  const char* from = b->_bytes + offset;
  const auto run = [r, from](std::string& error) {
    uint32_t groups[3];
    std::memcpy(groups, from, sizeof groups);
    if (!groups[0] || !groups[1] || !groups[2]) return true;
    const swm_dim t = r->dispatch.group;
    r->dispatch.grid = {groups[0] * t.x, groups[1] * t.y, groups[2] * t.z};
    return r->run(error);
  };
  [self record:run barrier:false];
}
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope {
  [self checkOpen];
  if (!(scope & MTLBarrierScopeBuffers)) swm::misuse("a memory barrier that leaves out buffers");
  [self record:nullptr barrier:true];
}
- (void)memoryBarrierWithResources:(const id<MTLResource>[])resources count:(NSUInteger)count {
  [self checkOpen];
  for (NSUInteger i = 0; i < count; i++)
    swm::checked_buffer((id<MTLBuffer>)resources[i], "barrier");
  [self record:nullptr barrier:true];
}
@end

@interface SwmBlitEncoder : SwmEncoder <MTLBlitCommandEncoder>
@end

@implementation SwmBlitEncoder
- (void)copyFromBuffer:(id<MTLBuffer>)source
          sourceOffset:(NSUInteger)sourceOffset
              toBuffer:(id<MTLBuffer>)destination
     destinationOffset:(NSUInteger)destinationOffset
                  size:(NSUInteger)size {
  [self checkOpen];
  SwmBuffer* from = swm::checked_buffer(source, "copyFromBuffer");
  SwmBuffer* to = swm::checked_buffer(destination, "copyFromBuffer");
  check_range(from, sourceOffset, size, "copyFromBuffer, source");
  check_range(to, destinationOffset, size, "copyFromBuffer, destination");
  if (from == to &&
      std::max(sourceOffset, destinationOffset) - std::min(sourceOffset, destinationOffset) < size)
    swm::misuse("copyFromBuffer: the ranges overlap");
  [_commandBuffer use:from];
  [_commandBuffer use:to];
  const char* x = from->_bytes + sourceOffset;
  char* y = to->_bytes + destinationOffset;
  [self record:[=](std::string&) { return std::memcpy(y, x, size), true; } barrier:false];
}
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(uint8_t)value {
  [self checkOpen];
  SwmBuffer* b = swm::checked_buffer(buffer, "fillBuffer");
  if (!range.length) swm::misuse("fillBuffer: an empty range");
  check_range(b, range.location, range.length, "fillBuffer");
  [_commandBuffer use:b];
  char* to = b->_bytes + range.location;
  [self record:[=](std::string&) { return std::memset(to, value, range.length), true; }
       barrier:false];
}
- (void)synchronizeResource:(id<MTLResource>)resource {
  [self checkOpen];
  SwmBuffer* b = swm::checked_buffer((id<MTLBuffer>)resource, "synchronizeResource");
  if (b.storageMode != MTLStorageModeManaged)
    swm::misuse("synchronizeResource: the buffer is not managed");
}
@end

id<MTLComputeCommandEncoder> swm::make_compute_encoder(SwmCommandBuffer* commandBuffer,
                                                       MTLDispatchType type) {
  SwmComputeEncoder* e = [SwmComputeEncoder alloc];
  [e openOn:commandBuffer concurrent:type == MTLDispatchTypeConcurrent];
  return [e autorelease];
}

id<MTLBlitCommandEncoder> swm::make_blit_encoder(SwmCommandBuffer* commandBuffer) {
  SwmBlitEncoder* e = [SwmBlitEncoder alloc];
  [e openOn:commandBuffer concurrent:false];
  return [e autorelease];
}
