// Matrix multiplication of Metal Performance Shaders, declared for Linux. Test only.
#pragma once

#import <Metal/Metal.h>

typedef NS_ENUM(uint32_t, MPSDataType) {
  MPSDataTypeFloatBit = 0x10000000,
  MPSDataTypeFloat32 = MPSDataTypeFloatBit | 32,
  MPSDataTypeFloat16 = MPSDataTypeFloatBit | 16
};

// A command buffer round another one: what encodes to it lands in the one inside.
@interface MPSCommandBuffer : NSObject <MTLCommandBuffer> {
 @public
  id<MTLCommandBuffer> _commandBuffer;
}
+ (instancetype)commandBufferWithCommandBuffer:(id<MTLCommandBuffer>)commandBuffer;
+ (instancetype)commandBufferFromCommandQueue:(id<MTLCommandQueue>)commandQueue;
- (instancetype)initWithCommandBuffer:(id<MTLCommandBuffer>)commandBuffer;
- (void)commitAndContinue;
@property(readonly) id<MTLCommandBuffer> commandBuffer;
@property(readonly) id<MTLCommandBuffer> rootCommandBuffer;
@end

@interface MPSMatrixDescriptor : NSObject {
 @public
  NSUInteger _rows, _columns, _matrices, _rowBytes, _matrixBytes;
  MPSDataType _dataType;
}
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                rowBytes:(NSUInteger)rowBytes
                                dataType:(MPSDataType)dataType;
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                matrices:(NSUInteger)matrices
                                rowBytes:(NSUInteger)rowBytes
                             matrixBytes:(NSUInteger)matrixBytes
                                dataType:(MPSDataType)dataType;
+ (size_t)rowBytesForColumns:(NSUInteger)columns dataType:(MPSDataType)dataType;
@property(readonly) NSUInteger rows;
@property(readonly) NSUInteger columns;
@property(readonly) NSUInteger matrices;
@property(readonly) NSUInteger rowBytes;
@property(readonly) NSUInteger matrixBytes;
@property(readonly) MPSDataType dataType;
@end

@interface MPSMatrix : NSObject {
 @public
  id<MTLBuffer> _data;
  NSUInteger _offset;
  MPSMatrixDescriptor* _descriptor;
}
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer descriptor:(MPSMatrixDescriptor*)descriptor;
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSMatrixDescriptor*)descriptor;
@property(readonly) id<MTLDevice> device;
@property(readonly) NSUInteger rows;
@property(readonly) NSUInteger columns;
@property(readonly) NSUInteger matrices;
@property(readonly) NSUInteger rowBytes;
@property(readonly) NSUInteger matrixBytes;
@property(readonly) NSUInteger offset;
@property(readonly) MPSDataType dataType;
@property(readonly) id<MTLBuffer> data;
@end

@interface MPSKernel : NSObject {
 @public
  id<MTLDevice> _device;
  NSString* _label;
}
@property(readwrite, copy) NSString* label;
@property(readonly) id<MTLDevice> device;
@end

// result = alpha * op(left) * op(right) + beta * result. With beta 0 the result is not read.
@interface MPSMatrixMultiplication : MPSKernel {
  BOOL _transposeLeft, _transposeRight;
  NSUInteger _resultRows, _resultColumns, _interiorColumns;
  double _alpha, _beta;
  MTLOrigin _resultMatrixOrigin, _leftMatrixOrigin, _rightMatrixOrigin;
  NSUInteger _batchStart, _batchSize;
}
- (instancetype)initWithDevice:(id<MTLDevice>)device
                    resultRows:(NSUInteger)resultRows
                 resultColumns:(NSUInteger)resultColumns
               interiorColumns:(NSUInteger)interiorColumns;
- (instancetype)initWithDevice:(id<MTLDevice>)device
                 transposeLeft:(BOOL)transposeLeft
                transposeRight:(BOOL)transposeRight
                    resultRows:(NSUInteger)resultRows
                 resultColumns:(NSUInteger)resultColumns
               interiorColumns:(NSUInteger)interiorColumns
                         alpha:(double)alpha
                          beta:(double)beta;
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                   leftMatrix:(MPSMatrix*)leftMatrix
                  rightMatrix:(MPSMatrix*)rightMatrix
                 resultMatrix:(MPSMatrix*)resultMatrix;
@property(readwrite, nonatomic) MTLOrigin resultMatrixOrigin;
@property(readwrite, nonatomic) MTLOrigin leftMatrixOrigin;
@property(readwrite, nonatomic) MTLOrigin rightMatrixOrigin;
@property(readwrite, nonatomic) NSUInteger batchStart;
@property(readwrite, nonatomic) NSUInteger batchSize;
@end

FOUNDATION_EXPORT BOOL MPSSupportsMTLDevice(id<MTLDevice> device);
