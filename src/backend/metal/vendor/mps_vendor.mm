#include "backend/metal/vendor/mps_vendor.h"

#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include <array>

namespace tern::metal {
namespace {

using backend::Activation;
static_assert(static_cast<int>(Activation::kGeluTanh) == kTernGeluTanh &&
              static_cast<int>(Activation::kSilu) == kTernSilu);

constexpr std::array kTriples = {
    backend::DtypeTriple{Dtype::kF32, Dtype::kF32, Dtype::kF32},
    backend::DtypeTriple{Dtype::kF16, Dtype::kF16, Dtype::kF16},
};

struct MpsKernel final : gpu::VendorKernel {
  Owned<MPSMatrixMultiplication*> object;
};

// One matrix of a loop, or the whole batch.
struct MpsDescriptor final : gpu::VendorDescriptor {
  Owned<MPSMatrixDescriptor*> object;
  bool is_loop = false;
};

struct MpsView final : gpu::VendorView {
  backend::AllocationRef memory;
  Owned<MPSMatrix*> object;
};

std::uint64_t element_bytes(Dtype dtype) { return dtype == Dtype::kF16 ? 2 : 4; }

BufferObject buffer_of(const backend::AllocationRef& memory) {
  return static_cast<const MetalMemory&>(*memory).buffer();
}

tern_u32 element_type(Dtype dtype) {
  return dtype == Dtype::kF16 ? kTernF16 : dtype == Dtype::kBf16 ? kTernBf16 : kTernF32;
}

bool is_loop(const gpu::MatrixRef& matrix) {
  return static_cast<const MpsDescriptor&>(*matrix.descriptor).is_loop;
}

// Matrix `index` of a batch; of one call for all, the batch itself. The result is owned.
Owned<MPSMatrix*> matrix_at(const gpu::MatrixRef& matrix, std::uint32_t index) {
  const backend::Operand& o = matrix.operand;
  if (index == 0)
    return Owned<MPSMatrix*>::shared(static_cast<const MpsView&>(*matrix.view).object.get());
  Owned<MPSMatrixDescriptor*> one = Owned<MPSMatrixDescriptor*>::shared([MPSMatrixDescriptor
      matrixDescriptorWithRows:o.rows
                       columns:o.cols
                      rowBytes:o.row_stride * element_bytes(o.dtype)
                      dataType:o.dtype == Dtype::kF16 ? MPSDataTypeFloat16 : MPSDataTypeFloat32]);
  return Owned<MPSMatrix*>([[MPSMatrix alloc]
      initWithBuffer:buffer_of(o.memory)
              offset:o.offset + index * o.batch_stride * element_bytes(o.dtype)
          descriptor:one.get()]);
}

}  // namespace

MpsVendor::MpsVendor(std::shared_ptr<Context> context, std::shared_ptr<Pipelines> pipelines)
    : context_(std::move(context)), pipelines_(std::move(pipelines)) {
  limits_.name = "mps";
  limits_.triples = kTriples;
  limits_.conversion = backend::ConversionRule::kWiden;
  limits_.offset_alignment = 4;
  limits_.unproven_bytes = std::uint64_t{1} << 32;
  limits_.has_batches = true;
  limits_.has_separate_c = false;
}

Result<std::shared_ptr<MpsVendor>> MpsVendor::make(std::shared_ptr<Context> context,
                                                   std::shared_ptr<Pipelines> pipelines) {
  @autoreleasepool {
    if (!MPSSupportsMTLDevice(context->device()))
      return fail(ErrorCode::kUnsupported, "[mps] this device has no matrix products of MPS");
    return std::shared_ptr<MpsVendor>(new MpsVendor(std::move(context), std::move(pipelines)));
  }
}

Result<std::unique_ptr<gpu::VendorKernel>> MpsVendor::make_kernel(const gpu::GemmKernelKey& key) {
  @autoreleasepool {
    auto kernel = std::make_unique<MpsKernel>();
    kernel->object = Owned<MPSMatrixMultiplication*>([[MPSMatrixMultiplication alloc]
         initWithDevice:context_->device()
          transposeLeft:key.is_a_transposed
         transposeRight:key.is_b_transposed
             resultRows:key.m
          resultColumns:key.n
        interiorColumns:key.k
                  alpha:static_cast<double>(key.alpha())
                   beta:static_cast<double>(key.beta())]);
    if (!kernel->object)
      return fail(ErrorCode::kDevice, "[mps] no kernel can be made for {} x {} x {}", key.m, key.n,
                  key.k);
    return std::unique_ptr<gpu::VendorKernel>(std::move(kernel));
  }
}

Result<std::unique_ptr<gpu::VendorDescriptor>> MpsVendor::make_descriptor(
    const gpu::DescriptorKey& key) {
  @autoreleasepool {
    const std::uint64_t element = element_bytes(key.dtype);
    const MPSDataType type = key.dtype == Dtype::kF16 ? MPSDataTypeFloat16 : MPSDataTypeFloat32;
    auto made = std::make_unique<MpsDescriptor>();
    // What MPS takes as one batch: whole rows from matrix to matrix, none of them shared.
    made->is_loop = key.batch > 1 && (key.batch_stride % key.row_stride != 0 ||
                                      key.batch_stride < key.rows * key.row_stride);
    MPSMatrixDescriptor* object =
        made->is_loop || key.batch == 1
            ? [MPSMatrixDescriptor matrixDescriptorWithRows:key.rows
                                                    columns:key.cols
                                                   rowBytes:key.row_stride * element
                                                   dataType:type]
            : [MPSMatrixDescriptor matrixDescriptorWithRows:key.rows
                                                    columns:key.cols
                                                   matrices:key.batch
                                                   rowBytes:key.row_stride * element
                                                matrixBytes:key.batch_stride * element
                                                   dataType:type];
    made->object = Owned<MPSMatrixDescriptor*>::shared(object);
    if (!made->object)
      return fail(ErrorCode::kDevice, "[mps] no descriptor can be made for {} x {}", key.rows,
                  key.cols);
    return std::unique_ptr<gpu::VendorDescriptor>(std::move(made));
  }
}

Result<std::unique_ptr<gpu::VendorView>> MpsVendor::make_view(
    const gpu::ViewKey& key, const backend::AllocationRef& memory,
    const gpu::VendorDescriptor* descriptor) {
  @autoreleasepool {
    auto view = std::make_unique<MpsView>();
    view->memory = memory;
    view->object = Owned<MPSMatrix*>([[MPSMatrix alloc]
        initWithBuffer:buffer_of(memory)
                offset:key.offset
            descriptor:static_cast<const MpsDescriptor*>(descriptor)->object.get()]);
    if (!view->object)
      return fail(ErrorCode::kDevice, "[mps] no matrix can be made of {} x {} at byte {}",
                  key.matrix.rows, key.matrix.cols, key.offset);
    return std::unique_ptr<gpu::VendorView>(std::move(view));
  }
}

Result<void> MpsVendor::encode_product(const gpu::ProductCall& call,
                                       backend::EncodeContext& context) {
  @autoreleasepool {
    TERN_TRY(context.before_vendor_call());
    auto& commands = static_cast<Commands&>(context);
    MPSMatrixMultiplication* kernel = static_cast<MpsKernel*>(call.kernel)->object.get();
    // What MPS encodes lands in the command buffer that is open.
    MPSCommandBuffer* wrapped = [MPSCommandBuffer commandBufferWithCommandBuffer:commands.buffer()];
    if (wrapped == nil)
      return fail(ErrorCode::kDevice, "[mps] no command buffer for the product of {}", call.op);
    const bool loops = is_loop(call.a) || is_loop(call.b) || is_loop(call.d);
    const std::uint32_t calls = loops ? call.batch : 1;
    [kernel setBatchStart:0];
    [kernel setBatchSize:loops ? 1 : call.batch];
    for (std::uint32_t i = 0; i < calls; ++i) {
      const Owned<MPSMatrix*> a = matrix_at(call.a, i);
      const Owned<MPSMatrix*> b = matrix_at(call.b, i);
      const Owned<MPSMatrix*> d = matrix_at(call.d, i);
      if (!a || !b || !d)
        return fail(ErrorCode::kDevice, "[mps] no matrix {} of the batch of {}", i, call.op);
      [kernel encodeToCommandBuffer:wrapped
                         leftMatrix:a.get()
                        rightMatrix:b.get()
                       resultMatrix:d.get()];
    }
    return {};
  }
}

Result<void> MpsVendor::encode_own(const Launch& launch, const Bases& bases,
                                   backend::EncodeContext& context) {
  @autoreleasepool {
    TERN_ASSIGN(const id<MTLComputePipelineState> pipeline, pipelines_->pipeline(launch.kernel));
    return static_cast<Commands&>(context).dispatch(pipeline, launch, bases);
  }
}

Result<void> MpsVendor::encode_conversion(const gpu::ConversionCall& call,
                                          backend::EncodeContext& context) {
  TernConvertParams p{};
  p.from = call.from.offset;
  p.to = call.to.offset;
  p.rows = call.from.rows;
  p.cols = call.from.cols;
  p.from_row_stride = call.from.row_stride;
  p.from_batch_stride = call.from.batch_stride;
  p.to_row_stride = call.to.row_stride;
  p.to_batch_stride = call.to.batch_stride;
  p.batch = call.batch;
  p.from_type = element_type(call.from.dtype);
  p.to_type = element_type(call.to.dtype);
  const BufferObject from = buffer_of(call.from.memory);
  const BufferObject to = buffer_of(call.to.memory);
  return encode_own(convert_launch(p), {[from](std::uint32_t) { return from; }, to, to}, context);
}

Result<void> MpsVendor::encode_epilogue(const gpu::EpilogueCall& call,
                                        backend::EncodeContext& context) {
  TernEpilogueParams p{};
  const BufferObject d = buffer_of(call.d.memory);
  BufferObject source = d;
  BufferObject c = d;
  BufferObject bias = d;
  p.activation = static_cast<tern_u32>(call.activation);
  if (call.source) {
    p.activation |= kHasSource;
    source = buffer_of(call.source->memory);
    p.source = call.source->offset;
    p.source_row_stride = call.source->row_stride;
    p.source_batch_stride = call.source->batch_stride;
  }
  if (call.beta != 0.0F) {
    p.activation |= kHasC;
    c = buffer_of(call.c.memory);
    p.c = call.c.offset;
    p.c_row_stride = call.c.row_stride;
    p.c_batch_stride = call.c.batch_stride;
    p.c_type = element_type(call.c.dtype);
  }
  if (call.bias) {
    p.activation |= kHasBias;
    bias = buffer_of(call.bias->memory);
    p.bias = call.bias->offset;
    p.bias_type = element_type(call.bias->dtype);
  }
  p.d = call.d.offset;
  p.d_row_stride = call.d.row_stride;
  p.d_batch_stride = call.d.batch_stride;
  p.d_type = element_type(call.d.dtype);
  p.rows = call.m;
  p.cols = call.n;
  p.batch = call.batch;
  p.beta = call.beta;
  Launch launch = epilogue_launch(p);
  launch.bias_buffer = 1;
  return encode_own(
      launch, {[source, bias](std::uint32_t index) { return index == 1 ? bias : source; }, d, c},
      context);
}

}  // namespace tern::metal
