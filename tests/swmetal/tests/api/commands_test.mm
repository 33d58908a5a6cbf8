// Command buffers of the fake Metal: order, handlers, errors, concurrent encoders, blits, faults.
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "api_fixture.h"

namespace swmetal_test {
namespace {

using Commands = Api;

TEST_F(Commands, DispatchesOfASerialEncoderRunInOrder) {
  id<MTLBuffer> out = buffer({0});
  id<MTLCommandBuffer> c = [queue commandBuffer];
  id<MTLComputeCommandEncoder> e = [c computeCommandEncoder];
  [e setComputePipelineState:pipeline(@"step")];
  [e setBuffer:out offset:0 atIndex:0];
  for (const uint32_t value : {1u, 0u, 1u}) {
    [e setBytes:&value length:4 atIndex:1];
    [e dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  }
  [e endEncoding];
  [c commit];
  [c waitUntilCompleted];
  EXPECT_EQ(words(out)[0], 5u);
  EXPECT_EQ([c status], MTLCommandBufferStatusCompleted);
  EXPECT_EQ([c error], nil);
  EXPECT_GE([c GPUEndTime], [c GPUStartTime]);
}

// 1 and 0 may change places, the value after the barrier may not.
TEST_F(Commands, DispatchesOfAConcurrentEncoderAreReorderedBetweenBarriers) {
  for (const swm_order order : {SWM_ORDER_FORWARD, SWM_ORDER_REVERSE}) {
    swm_set_order(order, 1);
    id<MTLBuffer> out = buffer({0});
    id<MTLCommandBuffer> c = [queue commandBuffer];
    id<MTLComputeCommandEncoder> e =
        [c computeCommandEncoderWithDispatchType:MTLDispatchTypeConcurrent];
    [e setComputePipelineState:pipeline(@"step")];
    [e setBuffer:out offset:0 atIndex:0];
    for (const uint32_t value : {1u, 0u, 9u, 1u}) {
      if (value == 9) {
        [e memoryBarrierWithScope:MTLBarrierScopeBuffers];
        continue;
      }
      [e setBytes:&value length:4 atIndex:1];
      [e dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
    }
    [e endEncoding];
    [c commit];
    [c waitUntilCompleted];
    EXPECT_EQ(words(out)[0], order == SWM_ORDER_FORWARD ? 5u : 3u);
  }
}

TEST_F(Commands, CommitReturnsAndHandlersRunBeforeTheWaitEnds) {
  __block std::atomic<int>* seen = new std::atomic<int>(0);
  id<MTLCommandBuffer> c = [queue commandBuffer];
  [c addScheduledHandler:^(id<MTLCommandBuffer> b) {
    *seen += [b status] == MTLCommandBufferStatusScheduled ? 1 : 100;
  }];
  [c addCompletedHandler:^(id<MTLCommandBuffer> b) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    *seen += [b status] == MTLCommandBufferStatusCompleted ? 10 : 100;
  }];
  [c enqueue];
  [c commit];
  [c waitUntilScheduled];
  [c waitUntilCompleted];
  EXPECT_EQ(*seen, 11);
  delete seen;
}

TEST_F(Commands, AFailedDispatchIsAnErrorAndStopsTheCommandBuffer) {
  id<MTLBuffer> out = buffer(4096);
  id<MTLCommandBuffer> c = [queue commandBuffer];
  [c setLabel:@"layer 3"];
  id<MTLComputeCommandEncoder> e = [c computeCommandEncoder];
  [e setLabel:@"attention"];
  [e setComputePipelineState:pipeline(@"diverges")];
  [e setBuffer:out offset:0 atIndex:0];
  [e dispatchThreads:MTLSizeMake(32, 1, 1) threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
  const uint32_t value = 1;
  [e setComputePipelineState:pipeline(@"fill")];
  [e setBytes:&value length:4 atIndex:1];
  [e dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  [e endEncoding];
  [c commit];
  [c waitUntilCompleted];
  EXPECT_EQ([c status], MTLCommandBufferStatusError);
  EXPECT_NE(words(out)[0], 1u) << "the second dispatch ran";
  const std::string t = text([c error]);
  for (const char* part : {"layer 3", "attention", "api.metal", "diverges", "line"})
    EXPECT_NE(t.find(part), std::string::npos) << part << " in: " << t;
  EXPECT_EQ([[[c error] domain] isEqualToString:MTLCommandBufferErrorDomain], YES);
  EXPECT_EQ([run(pipeline(@"fill"), out, 1, &value) status], MTLCommandBufferStatusCompleted)
      << "the next command buffer is well";
}

TEST_F(Commands, WhatAKernelNeedsIsChecked) {
  id<MTLBuffer> out = buffer(4096);
  const uint32_t value = 1;
  EXPECT_NE(text([run(pipeline(@"fill"), out, 1) error]).find("nothing is bound to buffer 1"),
            std::string::npos);
  EXPECT_NE(text([run(pipeline(@"wants_struct"), out, 1, &value) error]).find("fewer bytes"),
            std::string::npos);
  EXPECT_NE(text([run(pipeline(@"group_memory"), out, 32) error]).find("has no length"),
            std::string::npos);
  EXPECT_NE(text([run(pipeline(@"too_much_group_memory"), out, 32) error]).find("36000 bytes"),
            std::string::npos);
  EXPECT_EQ([run(pipeline(@"group_memory"), out, 32, nullptr, 128) error], nil);
  EXPECT_EQ(words(out)[0], 31u);
  EXPECT_NE(text([run(pipeline(@"group_memory"), out, 32, nullptr, 32784) error]).find("32784"),
            std::string::npos);
}

TEST_F(Commands, IndirectDispatchesReadTheirSizeWhenTheyRun) {
  id<MTLBuffer> out = buffer({0, 0}), size = buffer({0, 0, 0});
  id<MTLCommandBuffer> c = [queue commandBuffer];
  id<MTLComputeCommandEncoder> e = [c computeCommandEncoder];
  [e setComputePipelineState:pipeline(@"sizes")];
  [e setBuffer:out offset:0 atIndex:0];
  [e dispatchThreadgroupsWithIndirectBuffer:size
                       indirectBufferOffset:0
                      threadsPerThreadgroup:MTLSizeMake(8, 1, 1)];
  [e endEncoding];
  words(size)[0] = 3, words(size)[1] = words(size)[2] = 1;
  [c commit];
  [c waitUntilCompleted];
  EXPECT_EQ(words(out)[0], 24u);
  EXPECT_EQ(words(out)[1], 3u);
}

TEST_F(Commands, BlitsCopyAndFill) {
  id<MTLBuffer> a = buffer({1, 2, 3, 4}), b = buffer({0, 0, 0, 0});
  id<MTLCommandBuffer> c = [queue commandBuffer];
  id<MTLBlitCommandEncoder> e = [c blitCommandEncoder];
  [e copyFromBuffer:a sourceOffset:4 toBuffer:b destinationOffset:8 size:8];
  [e fillBuffer:b range:NSMakeRange(0, 4) value:1];
  [e endEncoding];
  [c commit];
  [c waitUntilCompleted];
  EXPECT_EQ(words(b)[0], 0x01010101u);
  EXPECT_EQ(words(b)[2], 2u);
  EXPECT_EQ(words(b)[3], 3u);
}

TEST_F(Commands, ACommandBufferKeepsWhatItUses) {
  const uint64_t before = swm_live_objects("SwmBuffer");
  id<MTLCommandBuffer> c = [queue commandBuffer];
  id<MTLBuffer> out = [device newBufferWithLength:64 options:MTLResourceStorageModeShared];
  const uint32_t value = 9;
  id<MTLComputeCommandEncoder> e = [c computeCommandEncoder];
  [e setComputePipelineState:pipeline(@"fill")];
  [e setBuffer:out offset:0 atIndex:0];
  [e setBytes:&value length:4 atIndex:1];
  [e dispatchThreads:MTLSizeMake(16, 1, 1) threadsPerThreadgroup:MTLSizeMake(16, 1, 1)];
  [e endEncoding];
  [out release];
  EXPECT_EQ(swm_live_objects("SwmBuffer"), before + 1);
  [c commit];
  [c waitUntilCompleted];
  EXPECT_EQ([c status], MTLCommandBufferStatusCompleted);
  EXPECT_EQ(swm_live_objects("SwmBuffer"), before);
}

TEST_F(Commands, QueuesAndThreadsDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (uint32_t t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      @autoreleasepool {
        id<MTLCommandQueue> own = [[device newCommandQueue] autorelease];
        id<MTLBuffer> out = [[device newBufferWithLength:256 options:0] autorelease];
        for (uint32_t i = 0; i < 20; i++) {
          @autoreleasepool {
            const uint32_t value = 100 * t + i;
            id<MTLCommandBuffer> c = [own commandBuffer];
            id<MTLComputeCommandEncoder> e = [c computeCommandEncoder];
            [e setComputePipelineState:pipeline(@"fill")];
            [e setBuffer:out offset:0 atIndex:0];
            [e setBytes:&value length:4 atIndex:1];
            [e dispatchThreads:MTLSizeMake(64, 1, 1) threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
            [e endEncoding];
            [c commit];
            [c waitUntilCompleted];
            good += words(out)[63] == value;
          }
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, 80);
}

TEST_F(Commands, ManyStepsLeaveNothingBehind) {
  id<MTLBuffer> out = buffer({0});
  id<MTLComputePipelineState> state = pipeline(@"fill");
  uint64_t before = 0;
  for (uint32_t i = 0; i < 2000; i++) {
    @autoreleasepool {
      run(state, out, 1, &i);
    }
    if (i == 10) before = swm_live_objects(nullptr);
  }
  EXPECT_LE(swm_live_objects(nullptr), before + 2) << "the last may not be released yet";
}

using Faults = Api;

TEST_F(Faults, TheNthOfEachKindFails) {
  const uint32_t value = 1;
  id<MTLBuffer> out = buffer({0});
  swm_fail_nth(SWM_ALLOCATION, 2);
  EXPECT_NE(buffer({1}), nil);
  EXPECT_EQ(buffer({1}), nil);
  EXPECT_NE(buffer({1}), nil);
  swm_fail_nth(SWM_LIBRARY, 1);
  EXPECT_EQ(load(API_LIBRARY), nil);
  EXPECT_EQ(text(error), "an injected failure");
  swm_fail_nth(SWM_FUNCTION, 1);
  EXPECT_EQ(function(@"fill"), nil);
  swm_fail_nth(SWM_PIPELINE, 1);
  EXPECT_EQ(pipeline(@"fill"), nil);
  swm_fail_nth(SWM_QUEUE, 1);
  EXPECT_EQ([device newCommandQueue], nil);
  swm_fail_nth(SWM_COMMAND_BUFFER, 1);
  EXPECT_EQ([queue commandBuffer], nil);
  swm_fail_nth(SWM_COMMIT, 1);
  swm_set_commit_error(MTLCommandBufferErrorTimeout, "took too long");
  NSError* e = [run(pipeline(@"fill"), out, 1, &value) error];
  EXPECT_EQ([e code], MTLCommandBufferErrorTimeout);
  EXPECT_NE(text(e).find("took too long"), std::string::npos);
  EXPECT_EQ(words(out)[0], 0u) << "nothing of it ran";
  EXPECT_EQ([run(pipeline(@"fill"), out, 1, &value) error], nil);
}

TEST_F(Faults, LargeAllocationsFail) {
  swm_set_fail_allocations_above(1000);
  EXPECT_EQ(buffer(1001), nil);
  EXPECT_NE(buffer(1000), nil);
}

TEST_F(Faults, ThereIsNoDevice) {
  swm_set_no_device(1);
  EXPECT_EQ(MTLCreateSystemDefaultDevice(), nil);
  EXPECT_EQ([[MTLCopyAllDevices() autorelease] count], 0u);
}

TEST_F(Faults, TheEnvironmentSetsThemToo) {
  setenv("SWM_FAIL_ALLOC_ABOVE", "64", 1);
  setenv("SWM_FAIL_NTH_PIPELINE", "2", 1);
  swm_reset();
  EXPECT_EQ(buffer(65), nil);
  EXPECT_NE(pipeline(@"fill"), nil);
  EXPECT_EQ(pipeline(@"fill"), nil);
  setenv("SWM_NO_DEVICE", "1", 1);
  swm_reset();
  EXPECT_EQ(MTLCreateSystemDefaultDevice(), nil);
  for (const char* name : {"SWM_FAIL_ALLOC_ABOVE", "SWM_FAIL_NTH_PIPELINE", "SWM_NO_DEVICE"})
    unsetenv(name);
}

TEST_F(Faults, ALostDeviceFailsEverything) {
  const uint32_t value = 1;
  id<MTLBuffer> out = buffer({0});
  id<MTLComputePipelineState> state = pipeline(@"fill");
  swm_lose_device();
  EXPECT_EQ([[run(state, out, 1, &value) error] code], MTLCommandBufferErrorDeviceRemoved);
  EXPECT_EQ(buffer({1}), nil);
  EXPECT_EQ(pipeline(@"fill"), nil);
  EXPECT_EQ([device newCommandQueue], nil);
}

}  // namespace
}  // namespace swmetal_test
