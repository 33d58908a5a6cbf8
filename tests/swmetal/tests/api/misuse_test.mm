// What Metal's validation layer or the runtime would stop ends the process with a sentence.
#include <csignal>
#include <thread>

#include "api_fixture.h"

// Declared so that it can be sent; no class has it.
@protocol Unoffered
- (void)performSelectorThatNobodyHas;
@end

namespace swmetal_test {
namespace {

class Misuse : public Api {
 protected:
  void SetUp() override {
    Api::SetUp();
    commands = [queue commandBuffer];
    out = buffer({0, 0, 0, 0});
  }
  id<MTLComputeCommandEncoder> open() {
    id<MTLComputeCommandEncoder> e = [commands computeCommandEncoder];
    [e setComputePipelineState:pipeline(@"small_groups")];
    [e setBuffer:out offset:0 atIndex:0];
    return e;
  }
  id<MTLBlitCommandEncoder> blit() { return [commands blitCommandEncoder]; }
  id<MTLCommandBuffer> commands = nil;
  id<MTLBuffer> out = nil;
};

// The statement runs in a child process.
#define EXPECT_MISUSE(statement, words) EXPECT_DEATH(statement, "software Metal: misuse: .*" words)

TEST_F(Misuse, Commit) {
  EXPECT_MISUSE((open(), [commands commit]), "commit while an encoder is open");
  EXPECT_MISUSE(([commands commit], [commands commit]), "already committed");
  EXPECT_MISUSE(([commands commit], [commands computeCommandEncoder]), "is committed");
  EXPECT_MISUSE([commands waitUntilCompleted], "waitUntilCompleted before commit");
  EXPECT_MISUSE([commands waitUntilScheduled], "waitUntilScheduled before commit");
  EXPECT_MISUSE(([commands enqueue], [commands enqueue]), "already enqueued");
}

TEST_F(Misuse, Handlers) {
  EXPECT_MISUSE(([commands commit], [commands addCompletedHandler:^(id<MTLCommandBuffer>){
                                    }]),
                "handler added after commit");
  EXPECT_MISUSE([commands addCompletedHandler:nil], "nil handler");
}

TEST_F(Misuse, EncodersOpenAndEnd) {
  EXPECT_MISUSE((open(), open()), "a second encoder");
  EXPECT_MISUSE((open(), blit()), "a second encoder");
  EXPECT_MISUSE(
      {
        id<MTLComputeCommandEncoder> e = open();
        [e endEncoding];
        [e setBuffer:out offset:0 atIndex:0];
      },
      "after endEncoding");
  EXPECT_MISUSE(
      {
        id<MTLComputeCommandEncoder> e = open();
        [e endEncoding];
        [e endEncoding];
      },
      "after endEncoding");
  EXPECT_MISUSE(
      {
        @autoreleasepool {
          open();
        }
      },
      "without endEncoding");
}

TEST_F(Misuse, Arguments) {
  const char bytes[5000] = {};
  EXPECT_MISUSE([open() setBytes:bytes length:0 atIndex:0], "1 to 4096 bytes");
  EXPECT_MISUSE([open() setBytes:bytes length:4097 atIndex:0], "1 to 4096 bytes");
  EXPECT_MISUSE([open() setBytes:bytes length:4 atIndex:31], "above 30");
  EXPECT_MISUSE([open() setBuffer:out offset:0 atIndex:31], "above 30");
  EXPECT_MISUSE([open() setBuffer:out offset:16 atIndex:0], "beyond a buffer of 16");
  EXPECT_MISUSE([open() setBuffer:out offset:2 atIndex:0], "multiple of 4");
  EXPECT_MISUSE([open() setBufferOffset:4 atIndex:7], "no buffer at 7");
  EXPECT_MISUSE([open() setBufferOffset:20 atIndex:0], "beyond a buffer");
  EXPECT_MISUSE([open() setThreadgroupMemoryLength:8 atIndex:0], "multiple of 16");
  EXPECT_MISUSE([open() setComputePipelineState:nil], "setComputePipelineState: nil");
}

TEST_F(Misuse, Dispatches) {
  const MTLSize one = MTLSizeMake(1, 1, 1);
  EXPECT_MISUSE([open() dispatchThreads:one threadsPerThreadgroup:MTLSizeMake(65, 1, 1)],
                "the pipeline allows 64");
  EXPECT_MISUSE([open() dispatchThreads:MTLSizeMake(0, 1, 1) threadsPerThreadgroup:one],
                "a size of 0");
  EXPECT_MISUSE([open() dispatchThreadgroups:MTLSizeMake(1, 0, 1) threadsPerThreadgroup:one],
                "a size of 0");
  EXPECT_MISUSE([open() dispatchThreadgroups:one threadsPerThreadgroup:MTLSizeMake(1, 1, 0)],
                "a size of 0");
  EXPECT_MISUSE([[commands computeCommandEncoder] dispatchThreads:one threadsPerThreadgroup:one],
                "without a pipeline");
  EXPECT_MISUSE([open() dispatchThreadgroupsWithIndirectBuffer:out
                                          indirectBufferOffset:8
                                         threadsPerThreadgroup:one],
                "12 bytes at offset 8");
}

TEST_F(Misuse, Blits) {
  id<MTLBuffer> b = buffer({0, 0});
  EXPECT_MISUSE([blit() copyFromBuffer:out sourceOffset:12 toBuffer:b destinationOffset:0 size:8],
                "source: 8 bytes at offset 12");
  EXPECT_MISUSE([blit() copyFromBuffer:out sourceOffset:0 toBuffer:b destinationOffset:0 size:12],
                "destination");
  EXPECT_MISUSE([blit() copyFromBuffer:out sourceOffset:0 toBuffer:out destinationOffset:4 size:8],
                "overlap");
  EXPECT_MISUSE([blit() fillBuffer:out range:NSMakeRange(8, 12) value:0], "fillBuffer");
  EXPECT_MISUSE([blit() copyFromBuffer:nil sourceOffset:0 toBuffer:out destinationOffset:0 size:4],
                "nil buffer");
  EXPECT_MISUSE([blit() synchronizeResource:out], "not managed");
}

TEST_F(Misuse, Buffers) {
  EXPECT_MISUSE([device newBufferWithLength:0 options:0], "0 bytes");
  EXPECT_MISUSE([out didModifyRange:NSMakeRange(0, 4)], "not managed");
  EXPECT_MISUSE([device newBufferWithBytesNoCopy:[out contents]
                                          length:16
                                         options:0
                                     deallocator:nil],
                "whole pages");
  EXPECT_MISUSE([device newBufferWithBytes:[out contents]
                                    length:4
                                   options:MTLResourceStorageModePrivate],
                "private");
}

TEST_F(Misuse, ABufferIsFreedWhileInFlight) {
  EXPECT_MISUSE(
      {
        id<MTLBuffer> b = [device newBufferWithLength:64 options:0];
        id<MTLCommandBuffer> c = [queue commandBufferWithUnretainedReferences];
        id<MTLComputeCommandEncoder> e = [c computeCommandEncoder];
        [e setComputePipelineState:pipeline(@"small_groups")];
        [e setBuffer:b offset:0 atIndex:0];
        [e dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
        [e endEncoding];
        [b release];
        [c commit];
      },
      "deallocated while a command buffer uses it");
}

TEST_F(Misuse, ObjectsAreReleasedTooOften) {
  EXPECT_DEATH(
      {
        NSObject* o = [[NSObject alloc] init];
        [o retain];
        [o release];
        [o release];
        [o release];
      },
      "over-release|use-after-free");
}

TEST_F(Misuse, AnAutoreleaseWithoutAPool) {
  EXPECT_EXIT(
      {
        // A thread of its own has no pool.
        std::thread([&] { [queue commandBuffer]; }).join();
      },
      testing::KilledBySignal(SIGABRT), "SwmCommandBuffer autoreleased with no pool");
}

TEST_F(Misuse, NilWhereAnObjectIsNeeded) {
  EXPECT_MISUSE([device newComputePipelineStateWithFunction:nil error:nil], "nil function");
  EXPECT_MISUSE([library newFunctionWithName:nil], "newFunctionWithName: nil");
  EXPECT_MISUSE([library newFunctionWithName:@"fill" constantValues:nil error:nil], "nil values");
  EXPECT_MISUSE([device newLibraryWithData:nil error:nil], "newLibraryWithData: nil");
  MTLComputePipelineDescriptor* d = [[[MTLComputePipelineDescriptor alloc] init] autorelease];
  EXPECT_MISUSE([device newComputePipelineStateWithDescriptor:d options:0 reflection:nil error:nil],
                "without a function");
}

TEST_F(Misuse, ASelectorThatIsNotOffered) {
  EXPECT_MISUSE([(id<Unoffered>)out performSelectorThatNobodyHas], "SwmBuffer does not offer");
}

}  // namespace
}  // namespace swmetal_test
