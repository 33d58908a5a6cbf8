#include "backend/metal/device/pipelines.h"

#import <dispatch/dispatch.h>

#include "backend/metal/device/commands.h"
#include "backend/metal/device/embedded.h"

namespace tern::metal {
namespace {

constexpr std::size_t kMostDiagnostics = 64 * 1024;

// At most 64 KiB, cut at a character.
std::string cut(std::string text) {
  if (text.size() <= kMostDiagnostics) return text;
  std::size_t end = kMostDiagnostics;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  return text + " [cut]";
}

}  // namespace

Result<id<MTLComputePipelineState>> Pipelines::pipeline(KernelId kernel_id) {
  const std::lock_guard lock(mutex_);
  if (const auto found = states_.find(kernel_id); found != states_.end())
    return found->second.get();
  if (const auto found = failures_.find(kernel_id); found != failures_.end()) return found->second;
  @autoreleasepool {
    Result<PipelineState> made = make(info(kernel_id));
    if (!made.ok()) {
      // What the device did may pass; what the kernel is will not.
      if (made.error().code() == ErrorCode::kUnsupported)
        failures_.emplace(kernel_id, made.error());
      return made.error();
    }
    return states_.emplace(kernel_id, std::move(made).value()).first->second.get();
  }
}

int Pipelines::libraries_loaded() const {
  const std::lock_guard lock(mutex_);
  return libraries_loaded_;
}

std::vector<std::string> Pipelines::warnings() const {
  const std::lock_guard lock(mutex_);
  return warnings_;
}

Result<Pipelines::PipelineState> Pipelines::make(const KernelInfo& kernel) {
  TERN_TRY(context_->check_present());
  TERN_ASSIGN(const id<MTLLibrary> library, library_for(kernel));
  TERN_ASSIGN(PipelineState state, make_state(library, kernel.entry));
  TERN_TRY(check_limits(state.get(), kernel));
  TERN_TRY(check_params(library, kernel));
  return state;
}

Result<id<MTLLibrary>> Pipelines::library_for(const KernelInfo& kernel) {
  if (!has_tried_prebuilt_) {
    Result<Library> loaded = load_prebuilt();
    if (loaded.ok())
      prebuilt_ = std::move(loaded).value();
    else
      warnings_.push_back(loaded.error().message());
    has_tried_prebuilt_ = true;
  }
  if (prebuilt_) {
    for (NSString* name in [prebuilt_.get() functionNames])
      if (text_of(name) == kernel.entry) return prebuilt_.get();
    warnings_.push_back(
        fmt::format("[metal] the library of this program lacks kernel {}", kernel.entry));
  }
  if (const auto found = compiled_.find(kernel.source); found != compiled_.end())
    return found->second.get();
  TERN_ASSIGN(Library library, compile(kernel));
  return compiled_.emplace(std::string(kernel.source), std::move(library)).first->second.get();
}

Result<Pipelines::Library> Pipelines::load_prebuilt() {
  NSError* error = nil;
  Library library;
  const std::span<const std::byte> bytes = embedded_library();
  if (!library_path_.empty()) {
    library = Library([context_->device()
        newLibraryWithURL:[NSURL fileURLWithPath:ns_string(library_path_)]
                    error:&error]);
  } else if (!bytes.empty()) {
    dispatch_data_t data =
        dispatch_data_create(bytes.data(), bytes.size(), nullptr, DISPATCH_DATA_DESTRUCTOR_DEFAULT);
    library = Library([context_->device() newLibraryWithData:data error:&error]);
#if !__has_feature(objc_arc)
    dispatch_release(data);
#endif
  } else {
    return fail(ErrorCode::kNotFound,
                "[metal] this program has no compiled kernels; they are compiled at every start");
  }
  if (!library)
    return fail(ErrorCode::kUnsupported,
                "[metal] the library of compiled kernels does not load: {}", cut(text_of(error)));
  ++libraries_loaded_;
  return library;
}

Result<Pipelines::Library> Pipelines::compile(const KernelInfo& kernel) {
  TERN_ASSIGN(const std::string source,
              flatten_source(fmt::format("backend/metal/kernels/{}.metal", kernel.source),
                             embedded_sources()));
  Owned<MTLCompileOptions*> options([[MTLCompileOptions alloc] init]);
  [options.get() setLanguageVersion:MTLLanguageVersion3_1];
  [options.get() setMathMode:MTLMathModeSafe];
  NSError* error = nil;
  Library library([context_->device() newLibraryWithSource:ns_string(source)
                                                   options:options.get()
                                                     error:&error]);
  if (!library)
    return fail(ErrorCode::kUnsupported, "[metal] kernel {} does not compile on this system: {}",
                kernel.entry, cut(text_of(error)));
  ++libraries_loaded_;
  return library;
}

Result<Pipelines::PipelineState> Pipelines::make_state(id<MTLLibrary> library,
                                                       std::string_view entry) {
  Owned<id<MTLFunction>> function([library newFunctionWithName:ns_string(entry)]);
  if (!function) return fail(ErrorCode::kUnsupported, "[metal] the library lacks kernel {}", entry);
  Owned<MTLComputePipelineDescriptor*> descriptor([[MTLComputePipelineDescriptor alloc] init]);
  [descriptor.get() setLabel:ns_string(entry)];
  [descriptor.get() setComputeFunction:function.get()];
  NSError* error = nil;
  PipelineState state([context_->device()
      newComputePipelineStateWithDescriptor:descriptor.get()
                                    options:MTLPipelineOptionNone
                                 reflection:nil
                                      error:&error]);
  if (!state)
    return fail(ErrorCode::kDevice, "[metal] no pipeline can be made of kernel {}: {}", entry,
                cut(text_of(error)));
  return state;
}

Result<void> Pipelines::check_limits(id<MTLComputePipelineState> state,
                                     const KernelInfo& kernel) const {
  const std::uint64_t threads = [state maxTotalThreadsPerThreadgroup];
  if (threads < kernel.max_threads)
    return fail(ErrorCode::kUnsupported,
                "[metal] kernel {} runs at most {} threads together on this device, it needs {}",
                kernel.entry, threads, kernel.max_threads);
  const std::uint64_t width = [state threadExecutionWidth];
  if (width != 32)
    return fail(ErrorCode::kUnsupported, "[metal] kernel {} has SIMD groups of {}, expected 32",
                kernel.entry, width);
  const std::uint64_t memory = [state staticThreadgroupMemoryLength];
  const std::uint64_t most = [context_->device() maxThreadgroupMemoryLength];
  if (memory > most)
    return fail(ErrorCode::kUnsupported,
                "[metal] kernel {} needs {} bytes of threadgroup memory, this device has {}",
                kernel.entry, memory, most);
  return {};
}

// The kernel beside the entry point says what it thinks of its parameter block.
Result<void> Pipelines::check_params(id<MTLLibrary> library, const KernelInfo& kernel) {
  TERN_ASSIGN(const PipelineState state,
              make_state(library, fmt::format("{}_params_mark", kernel.entry)));
  TERN_ASSIGN(const MemoryRef memory, context_->allocate(16, "the check of a kernel"));
  TERN_ASSIGN(const std::unique_ptr<Commands> commands,
              Commands::begin(context_, fmt::format("check of {}", kernel.entry)));
  TERN_ASSIGN(const id<MTLComputeCommandEncoder> encoder, commands->encoder());
  [encoder setComputePipelineState:state.get()];
  [encoder setBuffer:memory->buffer() offset:0 atIndex:0];
  [encoder dispatchThreadgroups:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
  TERN_TRY(commands->commit()->wait());
  std::uint64_t mark[2] = {};
  std::memcpy(mark, memory->contents(), sizeof mark);
  if (mark[0] == kernel.params_bytes && mark[1] == kernel.params_layout) return {};
  return fail(
      ErrorCode::kUnsupported,
      "[metal] kernel {} takes parameters of {} bytes and layout {:08x}, this program gives "
      "{} and {:08x}",
      kernel.entry, mark[0], mark[1], kernel.params_bytes, kernel.params_layout);
}

}  // namespace tern::metal
