// The classes behind Metal's protocols.
#pragma once

#import <Metal/Metal.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../rt/executor.h"
#include "control.h"
#include "support.h"

namespace swm {

// A module and what identifies its content over processes.
struct Library {
  std::shared_ptr<const Module> module;
  std::string identity;
  std::string temporary_file;  // removed with the library; empty: none
  ~Library();
};

// A kernel with its function constants: what a pipeline runs.
struct Function {
  std::shared_ptr<const Library> library;
  const swm_kernel* kernel = nullptr;
  ConstantValues constants;
  [[nodiscard]] std::string identity() const;         // key in binary archives
  [[nodiscard]] std::string unset_constants() const;  // names of what the kernel needs; "": none
};

struct Operation {
  std::function<bool(std::string& error)> run;
  int encoder = 0;
  bool is_concurrent = false;
  bool is_barrier = false;
  std::string label;  // of its encoder
};

}  // namespace swm

@class SwmQueue, SwmCommandBuffer;

@interface SwmDevice : NSObject <MTLDevice>
@end

@interface SwmBuffer : NSObject <MTLBuffer> {
 @public
  char* _bytes;
  NSUInteger _length;
  MTLResourceOptions _options;
  void (^_deallocator)(void*, NSUInteger);
  bool _isOwner;
  std::atomic<int> _inFlight;
  NSString* _label;
}
- (instancetype)initWithBytes:(void*)bytes
                       length:(NSUInteger)length
                      options:(MTLResourceOptions)options
                      isOwner:(bool)isOwner;
@end

@interface SwmLibrary : NSObject <MTLLibrary> {
 @public
  std::shared_ptr<const swm::Library> _library;
  NSString* _label;
}
@end

@interface SwmFunction : NSObject <MTLFunction> {
 @public
  std::shared_ptr<const swm::Function> _function;
  NSString* _label;
}
@end

@interface SwmPipeline : NSObject <MTLComputePipelineState> {
 @public
  std::shared_ptr<const swm::Function> _function;
  NSUInteger _maxThreads;
  NSString* _label;
}
@end

@interface SwmCommandBuffer : NSObject <MTLCommandBuffer> {
 @public
  std::vector<swm::Operation> _operations;
  std::vector<id> _retained;
  std::vector<SwmBuffer*> _buffers;  // in flight from commit to completion
  std::vector<MTLCommandBufferHandler> _scheduledHandlers, _completedHandlers;
  // Not under the mutex, and the mutex not taken before the operations have run: else the host's
  // wait would order what it did just before, and the race detector would miss an early access.
  std::atomic<MTLCommandBufferStatus> _status;
  std::mutex _mutex;  // of what follows
  std::condition_variable _changed;
  bool _isFinished;  // completed handlers have run
  double _startTime, _endTime, _commitTime;
  NSError* _error;
  int _encoders;
  bool _isEncoding;
  bool _retainsReferences;
  SwmQueue* _queue;
  NSString* _label;
}
- (void)checkEncoding;   // not committed, no encoder open
- (void)use:(id)object;  // until completion
- (int)nextEncoder;
- (void)run;  // on the queue's thread
@end

namespace swm {

struct QueueState {
  std::deque<SwmCommandBuffer*> waiting;
  std::mutex mutex;
  std::condition_variable changed;
  bool is_closed = false, has_thread = false;
};

}  // namespace swm

@interface SwmQueue : NSObject <MTLCommandQueue> {
 @public
  std::shared_ptr<swm::QueueState> _state;
  NSString* _label;
}
- (void)push:(SwmCommandBuffer*)commandBuffer;
@end

namespace swm {

SwmDevice* device();  // the one that there is
SwmBuffer* checked_buffer(id<MTLBuffer> buffer, const char* what);
// The command buffer inside of an MPSCommandBuffer, or the one itself.
SwmCommandBuffer* inner(id<MTLCommandBuffer> commandBuffer);
id<MTLComputeCommandEncoder> make_compute_encoder(SwmCommandBuffer* commandBuffer,
                                                  MTLDispatchType type);
id<MTLBlitCommandEncoder> make_blit_encoder(SwmCommandBuffer* commandBuffer);
NSError* device_lost_error();

}  // namespace swm

// A copied label with its accessors; for classes with an ivar _label.
#define SWM_LABEL                  \
  -(NSString*)label {              \
    return _label;                 \
  }                                \
  -(void)setLabel : (NSString*)l { \
    NSString* old = _label;        \
    _label = [l copy];             \
    [old release];                 \
  }
#define SWM_DEVICE         \
  -(id<MTLDevice>)device { \
    return swm::device();  \
  }
