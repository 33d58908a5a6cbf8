// Device, buffers, libraries, functions, pipelines and binary archives of the fake Metal.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "api_fixture.h"

namespace swmetal_test {
namespace {

using Objects = Api;

TEST_F(Objects, TheDeviceSaysWhatItIs) {
  EXPECT_STREQ([[device name] UTF8String], "Software Metal (test only)");
  EXPECT_EQ([device maxThreadgroupMemoryLength], 32768u);
  EXPECT_EQ([device maxThreadsPerThreadgroup].width, 1024u);
  EXPECT_TRUE([device supportsFamily:MTLGPUFamilyApple7]);
  EXPECT_TRUE([device supportsFamily:MTLGPUFamilyMetal3]);
  EXPECT_FALSE([device supportsFamily:MTLGPUFamilyApple10]);
  NSArray* all = [MTLCopyAllDevices() autorelease];
  EXPECT_EQ([all count], 1u);
}

TEST_F(Objects, TheDeviceAnswersWhatItIsTold) {
  const swm_device old = {"Old GPU", "old", 6, 0, 1 << 20, 4096};
  swm_set_device(&old);
  EXPECT_STREQ([[device name] UTF8String], "Old GPU");
  EXPECT_STREQ([[[device architecture] name] UTF8String], "old");
  EXPECT_FALSE([device supportsFamily:MTLGPUFamilyApple7]);
  EXPECT_FALSE([device hasUnifiedMemory]);
  EXPECT_EQ([device recommendedMaxWorkingSetSize], 1u << 20);
  EXPECT_EQ(buffer(8192), nil);
}

TEST_F(Objects, BuffersHoldBytesAndAreCounted) {
  const NSUInteger before = [device currentAllocatedSize];
  id<MTLBuffer> b = [device newBufferWithLength:100 options:MTLResourceStorageModeShared];
  EXPECT_EQ([b length], 100u);
  EXPECT_EQ([device currentAllocatedSize], before + 100);
  EXPECT_EQ(static_cast<unsigned char*>([b contents])[99], 0xff) << "new memory is poisoned";
  EXPECT_EQ([b gpuAddress], reinterpret_cast<uint64_t>([b contents]));
  [b setLabel:@"weights"];
  EXPECT_STREQ([[b label] UTF8String], "weights");
  [b release];
  EXPECT_EQ([device currentAllocatedSize], before);
  id<MTLBuffer> p = [[device newBufferWithLength:4
                                         options:MTLResourceStorageModePrivate] autorelease];
  EXPECT_EQ([p contents], nullptr);
  EXPECT_EQ([p storageMode], MTLStorageModePrivate);
  id<MTLBuffer> m = [[device newBufferWithLength:64
                                         options:MTLResourceStorageModeManaged] autorelease];
  [m didModifyRange:NSMakeRange(0, 64)];
}

TEST_F(Objects, MemoryOfTheProcessIsUsedInPlace) {
  void* page = nullptr;
  ASSERT_EQ(posix_memalign(&page, 16384, 16384), 0);
  __block int freed = 0;
  id<MTLBuffer> b = [device newBufferWithBytesNoCopy:page
                                              length:16384
                                             options:MTLResourceStorageModeShared
                                         deallocator:^(void* bytes, NSUInteger length) {
                                           freed += bytes == page && length == 16384;
                                         }];
  EXPECT_EQ([b contents], page);
  [b release];
  EXPECT_EQ(freed, 1);
  std::free(page);
}

TEST_F(Objects, ALibraryListsItsKernels) {
  ASSERT_NE(library, nil);
  EXPECT_GE([[library functionNames] count], 10u);
  EXPECT_STREQ([[function(@"fill") name] UTF8String], "fill");
  EXPECT_EQ(function(@"nothing"), nil);
  EXPECT_EQ(function(@"nothing", constants(true, 1)), nil);
  EXPECT_EQ([error code], MTLLibraryErrorFunctionNotFound);
}

TEST_F(Objects, ALibraryComesFromDataToo) {
  std::ifstream file(API_LIBRARY, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  dispatch_data_t data =
      dispatch_data_create(bytes.data(), bytes.size(), nullptr, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
  library = [[device newLibraryWithData:data error:&error] autorelease];
  dispatch_release(data);
  ASSERT_NE(library, nil);
  EXPECT_NE(pipeline(@"fill"), nil);
}

TEST_F(Objects, DamagedLibrariesAreRefused) {
  for (const std::string bytes : {"", "SWMTLIB1", "MTLB1234 other", "SWMTLIB1 no shared object"}) {
    dispatch_data_t data = dispatch_data_create(bytes.data(), bytes.size(), nullptr, nullptr);
    error = nil;
    EXPECT_EQ([device newLibraryWithData:data error:&error], nil) << bytes;
    EXPECT_NE(text(error), "") << bytes;
    dispatch_release(data);
  }
  EXPECT_EQ(load("/nowhere/at.metallib"), nil);
  EXPECT_EQ([error code], MTLLibraryErrorFileNotFound);
}

TEST_F(Objects, ALibraryComesFromSourceAndItsErrorsAreTold) {
  MTLCompileOptions* o = [[[MTLCompileOptions alloc] init] autorelease];
  [o setPreprocessorMacros:@{@"VALUE" : @42}];
  NSString* good = @"kernel void k(device uint* o [[buffer(0)]]) { o[0] = VALUE; }";
  library = [[device newLibraryWithSource:good options:o error:&error] autorelease];
  ASSERT_NE(library, nil) << text(error);
  id<MTLBuffer> out = buffer({0});
  run(pipeline(@"k"), out, 1);
  EXPECT_EQ(words(out)[0], 42u);
  NSString* bad = @"kernel void k(device uint* o [[buffer(0)]]) {\n  o[0] = undeclared;\n}";
  EXPECT_EQ([device newLibraryWithSource:bad options:nil error:&error], nil);
  EXPECT_EQ([error code], MTLLibraryErrorCompileFailure);
  EXPECT_NE(text(error).find(".metal:2"), std::string::npos) << text(error);
  EXPECT_NE(text(error).find("undeclared"), std::string::npos);
}

TEST_F(Objects, FunctionConstantsReachTheKernel) {
  id<MTLBuffer> out = buffer({0});
  run(pipeline(@"constants", constants(true, 3)), out, 1);
  EXPECT_EQ(words(out)[0], 13u);
  run(pipeline(@"constants", constants(false, 4)), out, 1);
  EXPECT_EQ(words(out)[0], 4u);
  run(pipeline(@"indirect_constant", constants(false, 4)), out, 1);
  EXPECT_EQ(words(out)[0], 5u);
}

TEST_F(Objects, AConstantThatIsReadAndNotSetFailsThePipeline) {
  for (NSString* name in @[ @"constants", @"indirect_constant" ]) {
    error = nil;
    EXPECT_EQ(pipeline(name), nil);
    EXPECT_NE(text(error).find("kAdd (index 1)"), std::string::npos) << text(error);
  }
  const bool twice = false;
  MTLFunctionConstantValues* some = [[[MTLFunctionConstantValues alloc] init] autorelease];
  [some setConstantValue:&twice type:MTLDataTypeBool withName:@"kDouble"];
  EXPECT_EQ(pipeline(@"constants", some), nil);
  EXPECT_NE(pipeline(@"fill"), nil) << "it reads none";
}

TEST_F(Objects, AConstantOfAnotherTypeIsRefused) {
  MTLFunctionConstantValues* v = constants(true, 1);
  const float wrong = 1;
  [v setConstantValue:&wrong type:MTLDataTypeFloat atIndex:1];
  EXPECT_EQ(function(@"constants", v), nil);
  EXPECT_NE(text(error).find("kAdd"), std::string::npos);
}

TEST_F(Objects, OptionalConstantsAndBuffers) {
  id<MTLBuffer> out = buffer({0});
  MTLFunctionConstantValues* v = constants(false, 0);
  EXPECT_EQ([run(pipeline(@"optional_constant", v), out, 1) status],
            MTLCommandBufferStatusCompleted);
  EXPECT_EQ(words(out)[0], 77u);
  const uint32_t maybe = 8;
  [v setConstantValue:&maybe type:MTLDataTypeUInt atIndex:2];
  run(pipeline(@"optional_constant", v), out, 1);
  EXPECT_EQ(words(out)[0], 8u);
  EXPECT_EQ([run(pipeline(@"optional_buffer", v), out, 1) error], nil);
  EXPECT_EQ(words(out)[0], 5u);
  NSError* unbound = [run(pipeline(@"optional_buffer", constants(true, 0)), out, 1) error];
  EXPECT_NE(text(unbound).find("nothing is bound to buffer 1"), std::string::npos);
}

class Archives : public Api {
 protected:
  MTLComputePipelineDescriptor* describe(NSString* name, id<MTLBinaryArchive> archive) {
    MTLComputePipelineDescriptor* d = [[[MTLComputePipelineDescriptor alloc] init] autorelease];
    d.computeFunction = function(name);
    if (archive) d.binaryArchives = @[ archive ];
    return d;
  }
  id<MTLBinaryArchive> archive(const std::string& path) {
    MTLBinaryArchiveDescriptor* d = [[[MTLBinaryArchiveDescriptor alloc] init] autorelease];
    if (!path.empty()) d.url = [NSURL fileURLWithPath:[NSString stringWithUTF8String:path.c_str()]];
    return [[device newBinaryArchiveWithDescriptor:d error:&error] autorelease];
  }
  id<MTLComputePipelineState> make(MTLComputePipelineDescriptor* d, MTLPipelineOption options) {
    return [[device newComputePipelineStateWithDescriptor:d
                                                  options:options
                                               reflection:nil
                                                    error:&error] autorelease];
  }
  const std::string path_ = testing::TempDir() + "swmetal_archive_test";
};

TEST_F(Archives, KeepFinishedPipelinesOverAFile) {
  id<MTLBinaryArchive> first = archive("");
  ASSERT_TRUE([first addComputePipelineFunctionsWithDescriptor:describe(@"fill", nil)
                                                         error:&error]);
  NSURL* url = [NSURL fileURLWithPath:[NSString stringWithUTF8String:path_.c_str()]];
  ASSERT_TRUE([first serializeToURL:url error:&error]);
  library = load(API_LIBRARY);  // the same content, loaded again
  id<MTLBinaryArchive> second = archive(path_);
  ASSERT_NE(second, nil) << text(error);
  const uint64_t compiled = swm_count(SWM_COMPILE);
  id<MTLComputePipelineState> hit =
      make(describe(@"fill", second), MTLPipelineOptionFailOnBinaryArchiveMiss);
  EXPECT_NE(hit, nil) << text(error);
  EXPECT_EQ(swm_count(SWM_COMPILE), compiled);
  EXPECT_EQ(make(describe(@"step", second), MTLPipelineOptionFailOnBinaryArchiveMiss), nil);
  EXPECT_NE(text(error).find("no pipeline of kernel step"), std::string::npos);
  EXPECT_NE(make(describe(@"step", second), MTLPipelineOptionNone), nil) << "compiled on a miss";
  EXPECT_EQ(swm_count(SWM_COMPILE), compiled + 1);
  std::remove(path_.c_str());
}

TEST_F(Archives, DamagedFilesAreRefused) {
  for (const char* content : {"", "something else", "SWMARCH1\n2\none line\n"}) {
    std::ofstream(path_) << content;
    EXPECT_EQ(archive(path_), nil) << content;
    EXPECT_EQ([error code], MTLBinaryArchiveErrorInvalidFile);
  }
  EXPECT_EQ(archive("/nowhere/archive"), nil);
  std::remove(path_.c_str());
}

TEST_F(Archives, AnotherDeviceDoesNotFindThem) {
  id<MTLBinaryArchive> a = archive("");
  ASSERT_TRUE([a addComputePipelineFunctionsWithDescriptor:describe(@"fill", nil) error:&error]);
  const swm_device other = {nullptr, "other", 9, 1, 1 << 30, 1 << 30};
  swm_set_device(&other);
  EXPECT_EQ(make(describe(@"fill", a), MTLPipelineOptionFailOnBinaryArchiveMiss), nil);
}

TEST_F(Objects, PipelinesKnowTheirLimits) {
  EXPECT_EQ([pipeline(@"fill") maxTotalThreadsPerThreadgroup], 1024u);
  EXPECT_EQ([pipeline(@"small_groups") maxTotalThreadsPerThreadgroup], 64u);
  EXPECT_EQ([pipeline(@"fill") threadExecutionWidth], 32u);
}

}  // namespace
}  // namespace swmetal_test
