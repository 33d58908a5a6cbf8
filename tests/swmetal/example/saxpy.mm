// The host program of the worked example. Nothing in it knows of the emulator. Builds with manual
// and with automatic reference counting.
#include "saxpy.h"

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <cstring>
#include <utility>

namespace example {
namespace {

// One owned object. Under ARC the compiler counts, otherwise this does.
template <class T>
class Owned {
 public:
  Owned() = default;
  explicit Owned(T object) : object_(object) {}
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nil)) {}
  Owned& operator=(Owned&&) = delete;
#if !__has_feature(objc_arc)
  ~Owned() { [object_ release]; }
#endif
  T get() const { return object_; }
  explicit operator bool() const { return object_ != nil; }

 private:
  T object_ = nil;
};

std::string text_of(NSError* error) {
  return error ? [[error localizedDescription] UTF8String] : "unknown error";
}

Owned<id<MTLComputePipelineState>> pipeline(id<MTLDevice> device, id<MTLLibrary> library,
                                            NSString* name, std::string& text) {
  const bool accumulate = true;
  NSError* error = nil;
  Owned<MTLFunctionConstantValues*> constants([[MTLFunctionConstantValues alloc] init]);
  [constants.get() setConstantValue:&accumulate type:MTLDataTypeBool atIndex:0];
  Owned<id<MTLFunction>> function([library newFunctionWithName:name
                                                constantValues:constants.get()
                                                         error:&error]);
  if (!function) {
    text = text_of(error);
    return {};
  }
  Owned<id<MTLComputePipelineState>> state(
      [device newComputePipelineStateWithFunction:function.get() error:&error]);
  if (!state) text = text_of(error);
  return state;
}

Owned<id<MTLBuffer>> buffer(id<MTLDevice> device, const std::vector<float>& values) {
  return Owned<id<MTLBuffer>>([device newBufferWithBytes:values.data()
                                                  length:values.size() * sizeof(float)
                                                 options:MTLResourceStorageModeShared]);
}

}  // namespace

Result saxpy(const std::string& library_path, float a, const std::vector<float>& x,
             const std::vector<float>& y) {
  @autoreleasepool {
    Result result;
    NSError* error = nil;
    Owned<id<MTLDevice>> device(MTLCreateSystemDefaultDevice());
    if (!device) return {{}, 0, "there is no Metal device"};
    Owned<id<MTLCommandQueue>> queue([device.get() newCommandQueue]);
    NSString* path = [NSString stringWithUTF8String:library_path.c_str()];
    Owned<id<MTLLibrary>> library([device.get() newLibraryWithURL:[NSURL fileURLWithPath:path]
                                                            error:&error]);
    if (!library) return {{}, 0, text_of(error)};
    auto multiply = pipeline(device.get(), library.get(), @"saxpy", result.error);
    auto sum = pipeline(device.get(), library.get(), @"sum", result.error);
    if (!multiply || !sum) return result;
    auto in = buffer(device.get(), x), out = buffer(device.get(), y);
    auto total = buffer(device.get(), {0.0f});
    if (!in || !out || !total) return {{}, 0, "out of memory"};

    const auto n = static_cast<uint32_t>(x.size());
    id<MTLCommandBuffer> commands = [queue.get() commandBuffer];
    id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
    [encoder setComputePipelineState:multiply.get()];
    [encoder setBuffer:in.get() offset:0 atIndex:0];
    [encoder setBuffer:out.get() offset:0 atIndex:1];
    [encoder setBytes:&a length:sizeof a atIndex:2];
    [encoder dispatchThreads:MTLSizeMake(n, 1, 1) threadsPerThreadgroup:MTLSizeMake(64, 1, 1)];
    [encoder setComputePipelineState:sum.get()];
    [encoder setBuffer:out.get() offset:0 atIndex:0];
    [encoder setBytes:&n length:sizeof n atIndex:1];
    [encoder setBuffer:total.get() offset:0 atIndex:2];
    [encoder dispatchThreadgroups:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(96, 1, 1)];
    [encoder endEncoding];
    [commands commit];
    [commands waitUntilCompleted];
    if ([commands status] != MTLCommandBufferStatusCompleted)
      return {{}, 0, text_of([commands error])};
    result.y.resize(y.size());
    std::memcpy(result.y.data(), [out.get() contents], y.size() * sizeof(float));
    result.sum = *static_cast<const float*>([total.get() contents]);
    return result;
  }
}

}  // namespace example
