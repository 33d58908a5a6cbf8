// Pipelines, their descriptors, and binary archives of finished pipelines.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "metal_objects.h"

@implementation MTLComputePipelineDescriptor
@synthesize label = _label, computeFunction = _computeFunction;
@synthesize binaryArchives = _binaryArchives;
@synthesize maxTotalThreadsPerThreadgroup = _maxTotalThreadsPerThreadgroup;
@synthesize threadGroupSizeIsMultipleOfThreadExecutionWidth =
    _threadGroupSizeIsMultipleOfThreadExecutionWidth;
- (void)dealloc {
  [_label release];
  [_computeFunction release];
  [_binaryArchives release];
  [super dealloc];
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  MTLComputePipelineDescriptor* copy = [MTLComputePipelineDescriptor new];
  copy.label = _label;
  copy.computeFunction = _computeFunction;
  copy.binaryArchives = _binaryArchives;
  copy.maxTotalThreadsPerThreadgroup = _maxTotalThreadsPerThreadgroup;
  return copy;
}
@end

@implementation MTLComputePipelineReflection
@end

@implementation MTLBinaryArchiveDescriptor
@synthesize url = _url;
- (void)dealloc {
  [_url release];
  [super dealloc];
}
- (id)copyWithZone:(NSZone*)zone {
  (void)zone;
  MTLBinaryArchiveDescriptor* copy = [MTLBinaryArchiveDescriptor new];
  copy.url = _url;
  return copy;
}
@end

@implementation SwmPipeline
- (void)dealloc {
  [_label release];
  [super dealloc];
}
- (NSString*)label {
  return _label;
}
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return _maxThreads;
}
- (NSUInteger)threadExecutionWidth {
  return SWM_LANES;
}
// Known only when the kernel runs; the executor checks the sum then.
- (NSUInteger)staticThreadgroupMemoryLength {
  return 0;
}
SWM_DEVICE
@end

namespace {

constexpr char kArchiveMagic[] = "SWMARCH1";

// What a finished pipeline is known by: content of the library, kernel, constants, device.
std::string key_of(MTLComputePipelineDescriptor* descriptor) {
  SwmFunction* function = (SwmFunction*)descriptor.computeFunction;
  if (!function) swm::misuse("a pipeline descriptor without a function");
  return swm::control().device().architecture + " " + function->_function->identity() + " " +
         std::to_string(descriptor.maxTotalThreadsPerThreadgroup);
}

// Why Metal would not make a pipeline of this function; empty: it would.
std::string refusal(const swm::Function& function) {
  if (swm::control().fails(SWM_PIPELINE)) return "an injected failure";
  const std::string unset = function.unset_constants();
  if (unset.empty()) return "";
  return std::string(function.kernel->module->source) + ": kernel " + function.kernel->name +
         " reads function constants that were not set: " + unset;
}

SwmPipeline* make_pipeline(const std::shared_ptr<const swm::Function>& function,
                           NSUInteger max_threads, NSString* label) {
  SwmPipeline* pipeline = [SwmPipeline new];
  pipeline->_function = function;
  const unsigned own = function->kernel->max_threads;
  pipeline->_maxThreads = max_threads ? max_threads : own ? own : swm::kMaxThreads;
  pipeline->_label = [label copy];
  return pipeline;
}

}  // namespace

@interface SwmArchive : NSObject <MTLBinaryArchive> {
 @public
  std::mutex _mutex;
  std::set<std::string> _keys;
  NSString* _label;
}
@end

@implementation SwmArchive
- (void)dealloc {
  [_label release];
  [super dealloc];
}
- (bool)has:(const std::string&)key {
  const std::lock_guard<std::mutex> lock(_mutex);
  return _keys.count(key) != 0;
}
- (bool)read:(const std::string&)path {
  std::ifstream file(path);
  std::string line;
  size_t count = 0;
  if (!std::getline(file, line) || line != kArchiveMagic || !std::getline(file, line)) return false;
  char* end = nullptr;
  count = std::strtoull(line.c_str(), &end, 10);
  while (std::getline(file, line)) _keys.insert(line);
  return end && !*end && _keys.size() == count;  // else cut short
}
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                            error:(NSError**)error {
  const std::string key = key_of(descriptor);
  std::string why = swm::control().fails(SWM_ARCHIVE) ? "an injected failure" : "";
  if (why.empty()) why = refusal(*((SwmFunction*)descriptor.computeFunction)->_function);
  if (!why.empty()) {
    swm::set_error(error, MTLBinaryArchiveDomain, MTLBinaryArchiveErrorCompilationFailure, why);
    return NO;
  }
  if (![self has:key]) swm::control().count(SWM_COMPILE);
  const std::lock_guard<std::mutex> lock(_mutex);
  _keys.insert(key);
  return YES;
}
- (BOOL)serializeToURL:(NSURL*)url error:(NSError**)error {
  if (!url) swm::misuse("serializeToURL: nil");
  const std::lock_guard<std::mutex> lock(_mutex);
  std::ofstream file(url.path.UTF8String);
  file << kArchiveMagic << "\n" << _keys.size() << "\n";
  for (const std::string& key : _keys) file << key << "\n";
  file.close();
  if (file && !_keys.empty() && !swm::control().fails(SWM_ARCHIVE)) return YES;
  swm::set_error(
      error, MTLBinaryArchiveDomain,
      _keys.empty() ? MTLBinaryArchiveErrorUnexpectedElement : MTLBinaryArchiveErrorInternalError,
      std::string(url.path.UTF8String) +
          (_keys.empty() ? ": an empty archive is not written" : ": cannot be written"));
  return NO;
}
SWM_LABEL
SWM_DEVICE
@end

@implementation SwmDevice (Pipelines)
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function
                                                             error:(NSError**)error {
  if (!function) swm::misuse("newComputePipelineStateWithFunction: nil function");
  const auto& f = ((SwmFunction*)function)->_function;
  const std::string why = refusal(*f);
  if (!why.empty()) {
    swm::set_error(error, MTLLibraryErrorDomain, MTLLibraryErrorInternal, why);
    return nil;
  }
  swm::control().count(SWM_COMPILE);
  return make_pipeline(f, 0, nil);
}
- (id<MTLComputePipelineState>)
    newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                  options:(MTLPipelineOption)options
                               reflection:(MTLComputePipelineReflection**)reflection
                                    error:(NSError**)error {
  if (!descriptor) swm::misuse("newComputePipelineStateWithDescriptor: nil descriptor");
  if (reflection) swm::misuse("software Metal offers no reflection; pass nil");
  const std::string key = key_of(descriptor);
  const auto& f = ((SwmFunction*)descriptor.computeFunction)->_function;
  std::string why = refusal(*f);
  bool is_archived = false;
  for (id archive in descriptor.binaryArchives)
    is_archived = is_archived || [(SwmArchive*)archive has:key];
  if (why.empty() && !is_archived && (options & MTLPipelineOptionFailOnBinaryArchiveMiss))
    why = std::string("the binary archives have no pipeline of kernel ") + f->kernel->name;
  if (!why.empty()) {
    swm::set_error(error, MTLLibraryErrorDomain, MTLLibraryErrorInternal, why);
    return nil;
  }
  if (!is_archived) swm::control().count(SWM_COMPILE);
  return make_pipeline(f, descriptor.maxTotalThreadsPerThreadgroup, descriptor.label);
}
- (id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor*)descriptor
                                                 error:(NSError**)error {
  if (!descriptor) swm::misuse("newBinaryArchiveWithDescriptor: nil");
  SwmArchive* archive = [SwmArchive new];
  const bool fails = swm::control().fails(SWM_ARCHIVE);
  if (!fails && (!descriptor.url || [archive read:descriptor.url.path.UTF8String])) return archive;
  const std::string path = descriptor.url ? descriptor.url.path.UTF8String : "";
  swm::set_error(error, MTLBinaryArchiveDomain, MTLBinaryArchiveErrorInvalidFile,
                 fails ? "an injected failure" : path + ": not a binary archive of software Metal");
  [archive release];
  return nil;
}
@end
