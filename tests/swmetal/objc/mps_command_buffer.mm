// MPSCommandBuffer: forwards everything to the command buffer inside.
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include "metal_objects.h"

@implementation MPSCommandBuffer
@synthesize commandBuffer = _commandBuffer;
+ (instancetype)commandBufferWithCommandBuffer:(id<MTLCommandBuffer>)commandBuffer {
  return [[[MPSCommandBuffer alloc] initWithCommandBuffer:commandBuffer] autorelease];
}
+ (instancetype)commandBufferFromCommandQueue:(id<MTLCommandQueue>)commandQueue {
  return [self commandBufferWithCommandBuffer:[commandQueue commandBuffer]];
}
- (instancetype)initWithCommandBuffer:(id<MTLCommandBuffer>)commandBuffer {
  if (!commandBuffer) swm::misuse("MPSCommandBuffer: a nil command buffer");
  _commandBuffer = [commandBuffer retain];
  return self;
}
- (void)dealloc {
  [_commandBuffer release];
  [super dealloc];
}
- (id<MTLCommandBuffer>)rootCommandBuffer {
  return swm::inner(_commandBuffer);
}
- (void)commitAndContinue {
  id<MTLCommandBuffer> next = [[_commandBuffer.commandQueue commandBuffer] retain];
  [_commandBuffer commit];
  [_commandBuffer release];
  _commandBuffer = next;
}
- (NSString*)label {
  return _commandBuffer.label;
}
- (void)setLabel:(NSString*)label {
  _commandBuffer.label = label;
}
- (id<MTLDevice>)device {
  return _commandBuffer.device;
}
- (id<MTLCommandQueue>)commandQueue {
  return _commandBuffer.commandQueue;
}
- (BOOL)retainedReferences {
  return _commandBuffer.retainedReferences;
}
- (MTLCommandBufferStatus)status {
  return _commandBuffer.status;
}
- (NSError*)error {
  return _commandBuffer.error;
}
- (CFTimeInterval)GPUStartTime {
  return _commandBuffer.GPUStartTime;
}
- (CFTimeInterval)GPUEndTime {
  return _commandBuffer.GPUEndTime;
}
- (CFTimeInterval)kernelStartTime {
  return _commandBuffer.kernelStartTime;
}
- (CFTimeInterval)kernelEndTime {
  return _commandBuffer.kernelEndTime;
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  return [_commandBuffer computeCommandEncoder];
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoderWithDispatchType:(MTLDispatchType)type {
  return [_commandBuffer computeCommandEncoderWithDispatchType:type];
}
- (id<MTLBlitCommandEncoder>)blitCommandEncoder {
  return [_commandBuffer blitCommandEncoder];
}
- (void)addScheduledHandler:(MTLCommandBufferHandler)block {
  [_commandBuffer addScheduledHandler:block];
}
- (void)addCompletedHandler:(MTLCommandBufferHandler)block {
  [_commandBuffer addCompletedHandler:block];
}
- (void)enqueue {
  [_commandBuffer enqueue];
}
- (void)commit {
  [_commandBuffer commit];
}
- (void)waitUntilScheduled {
  [_commandBuffer waitUntilScheduled];
}
- (void)waitUntilCompleted {
  [_commandBuffer waitUntilCompleted];
}
@end
