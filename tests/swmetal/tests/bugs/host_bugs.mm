// Host programs with one mistake each: host_bugs LIBRARY MISTAKE. The sanitizers must find them.
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <cstdio>
#include <string>

namespace {

float use(const char* library_path, const std::string& mistake) {
  NSError* error = nil;
  id<MTLDevice> device = MTLCreateSystemDefaultDevice();
  id<MTLCommandQueue> queue = [device newCommandQueue];
  NSURL* url = [NSURL fileURLWithPath:[NSString stringWithUTF8String:library_path]];
  id<MTLLibrary> library = [device newLibraryWithURL:url error:&error];
  id<MTLFunction> function = [library newFunctionWithName:@"with_barrier"];
  id<MTLComputePipelineState> state = [device newComputePipelineStateWithFunction:function
                                                                            error:&error];
  id<MTLBuffer> y = [device newBufferWithLength:256 options:MTLResourceStorageModeShared];
  auto* values = static_cast<volatile float*>([y contents]);
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
  [encoder setComputePipelineState:state];
  [encoder setBuffer:y offset:0 atIndex:1];
  [encoder dispatchThreads:MTLSizeMake(64, 1, 1) threadsPerThreadgroup:MTLSizeMake(64, 1, 1)];
  [encoder endEncoding];
  [commands commit];
  float result = 0;
  if (mistake == "early_read") result = values[3];
  if (mistake == "early_write") values[3] = 1;
  [commands waitUntilCompleted];
  result += values[3];
  if (mistake != "leak_buffer") [y release];
  if (mistake == "use_after_free") result += values[4];
  [state release];
  if (mistake != "leak_function") [function release];
  [library release];
  [queue release];
  [device release];
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  float result = 0;
  @autoreleasepool {
    result = use(argv[1], argv[2]);
  }
  std::printf("result %g\n", static_cast<double>(result));
  return 0;
}
