// What the tests of the fake Metal interface share: a device, a queue, the test library, a pool.
#pragma once

#import <Foundation/Foundation.h>
#import <Metal/Metal.h>
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <string>

#include "swmetal/swmetal.h"

namespace swmetal_test {

// Manual reference counting; everything that a test makes is autoreleased.
class Api : public testing::Test {
 protected:
  void SetUp() override {
    const swm_order order = swm_get_order();
    swm_reset();
    swm_set_order(order, 5);
    testing::FLAGS_gtest_death_test_style = "fast";
    pool_ = [[NSAutoreleasePool alloc] init];
    device = [MTLCreateSystemDefaultDevice() autorelease];
    queue = [[device newCommandQueue] autorelease];
    library = load(API_LIBRARY);
  }
  void TearDown() override {
    [pool_ drain];
    swm_reset();
  }

  id<MTLLibrary> load(const char* path) {
    NSURL* url = [NSURL fileURLWithPath:[NSString stringWithUTF8String:path]];
    return [[device newLibraryWithURL:url error:&error] autorelease];
  }
  id<MTLBuffer> buffer(std::initializer_list<uint32_t> words) {
    return [[device newBufferWithBytes:words.begin()
                                length:words.size() * 4
                               options:MTLResourceStorageModeShared] autorelease];
  }
  id<MTLBuffer> buffer(NSUInteger bytes) {
    return [[device newBufferWithLength:bytes options:MTLResourceStorageModeShared] autorelease];
  }
  static uint32_t* words(id<MTLBuffer> b) { return static_cast<uint32_t*>([b contents]); }
  id<MTLFunction> function(NSString* name, MTLFunctionConstantValues* values = nil) {
    if (!values) return [[library newFunctionWithName:name] autorelease];
    return [[library newFunctionWithName:name constantValues:values error:&error] autorelease];
  }
  id<MTLComputePipelineState> pipeline(NSString* name, MTLFunctionConstantValues* values = nil) {
    id<MTLFunction> f = function(name, values);
    if (!f) return nil;
    return [[device newComputePipelineStateWithFunction:f error:&error] autorelease];
  }
  static MTLFunctionConstantValues* constants(bool twice, uint32_t add) {
    MTLFunctionConstantValues* v = [[[MTLFunctionConstantValues alloc] init] autorelease];
    [v setConstantValue:&twice type:MTLDataTypeBool atIndex:0];
    [v setConstantValue:&add type:MTLDataTypeUInt atIndex:1];
    return v;
  }
  // One dispatch of `threads` threads with out at 0 and, if there is one, value at 1; committed and
  // waited for.
  id<MTLCommandBuffer> run(id<MTLComputePipelineState> state, id<MTLBuffer> out, NSUInteger threads,
                           const uint32_t* value = nullptr, NSUInteger group_bytes = 0) {
    id<MTLCommandBuffer> c = [queue commandBuffer];
    id<MTLComputeCommandEncoder> e = [c computeCommandEncoder];
    [e setComputePipelineState:state];
    [e setBuffer:out offset:0 atIndex:0];
    if (value) [e setBytes:value length:4 atIndex:1];
    if (group_bytes) [e setThreadgroupMemoryLength:group_bytes atIndex:0];
    [e dispatchThreads:MTLSizeMake(threads, 1, 1) threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
    [e endEncoding];
    [c commit];
    [c waitUntilCompleted];
    return c;
  }
  static std::string text(NSError* e) { return e ? [[e localizedDescription] UTF8String] : ""; }

  id<MTLDevice> device = nil;
  id<MTLCommandQueue> queue = nil;
  id<MTLLibrary> library = nil;
  NSError* error = nil;

 private:
  NSAutoreleasePool* pool_ = nil;
};

}  // namespace swmetal_test
