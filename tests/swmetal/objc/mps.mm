// Metal Performance Shaders: matrices, their multiplication as a plain loop in float, and the
// command buffer round another one.
#include <algorithm>
#include <cstring>

#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include "metal_objects.h"

namespace {

NSUInteger element_bytes(MPSDataType type) {
  if (type != MPSDataTypeFloat32 && type != MPSDataTypeFloat16)
    swm::misuse("an MPS data type that is neither Float32 nor Float16");
  return type == MPSDataTypeFloat32 ? 4 : 2;
}

// One operand of a multiplication, as the loop reads it.
struct View {
  char* bytes;
  NSUInteger row_bytes, matrix_bytes;
  MTLOrigin origin;
  bool is_half, is_transposed;

  char* at(NSUInteger matrix, NSUInteger i, NSUInteger j) const {
    if (is_transposed) std::swap(i, j);
    return bytes + matrix * matrix_bytes + (origin.x + i) * row_bytes +
           (origin.y + j) * (is_half ? 2 : 4);
  }
  float get(NSUInteger matrix, NSUInteger i, NSUInteger j) const {
    if (is_half) {
      _Float16 h;
      std::memcpy(&h, at(matrix, i, j), sizeof h);
      return float(h);
    }
    float f;
    std::memcpy(&f, at(matrix, i, j), sizeof f);
    return f;
  }
  void put(NSUInteger matrix, NSUInteger i, NSUInteger j, float value) const {
    const auto h = static_cast<_Float16>(value);
    std::memcpy(at(matrix, i, j), is_half ? static_cast<const void*>(&h) : &value, is_half ? 2 : 4);
  }
};

}  // namespace

@implementation MPSMatrixDescriptor
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                rowBytes:(NSUInteger)rowBytes
                                dataType:(MPSDataType)dataType {
  return [self matrixDescriptorWithRows:rows
                                columns:columns
                               matrices:1
                               rowBytes:rowBytes
                            matrixBytes:rows * rowBytes
                               dataType:dataType];
}
+ (instancetype)matrixDescriptorWithRows:(NSUInteger)rows
                                 columns:(NSUInteger)columns
                                matrices:(NSUInteger)matrices
                                rowBytes:(NSUInteger)rowBytes
                             matrixBytes:(NSUInteger)matrixBytes
                                dataType:(MPSDataType)dataType {
  if (!rows || !columns || !matrices) swm::misuse("MPSMatrixDescriptor: a size of 0");
  if (rowBytes < columns * element_bytes(dataType) || rowBytes % element_bytes(dataType))
    swm::misuse(
        "MPSMatrixDescriptor: rowBytes is smaller than a row, or no multiple of an element");
  if (matrices > 1 && (matrixBytes < rows * rowBytes || matrixBytes % rowBytes))
    swm::misuse(
        "MPSMatrixDescriptor: matrixBytes is smaller than a matrix, or no multiple of rows");
  MPSMatrixDescriptor* d = [[MPSMatrixDescriptor new] autorelease];
  d->_rows = rows;
  d->_columns = columns;
  d->_matrices = matrices;
  d->_rowBytes = rowBytes;
  d->_matrixBytes = matrixBytes;
  d->_dataType = dataType;
  return d;
}
+ (size_t)rowBytesForColumns:(NSUInteger)columns dataType:(MPSDataType)dataType {
  return (columns * element_bytes(dataType) + 15) / 16 * 16;
}
@synthesize rows = _rows, columns = _columns, matrices = _matrices;
@synthesize rowBytes = _rowBytes, matrixBytes = _matrixBytes, dataType = _dataType;
@end

@implementation MPSMatrix
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer descriptor:(MPSMatrixDescriptor*)descriptor {
  return [self initWithBuffer:buffer offset:0 descriptor:descriptor];
}
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSMatrixDescriptor*)descriptor {
  SwmBuffer* b = swm::checked_buffer(buffer, "MPSMatrix");
  if (!descriptor) swm::misuse("MPSMatrix: nil descriptor");
  const NSUInteger bytes = (descriptor.matrices - 1) * descriptor.matrixBytes +
                           (descriptor.rows - 1) * descriptor.rowBytes +
                           descriptor.columns * element_bytes(descriptor.dataType);
  if (offset > b->_length || bytes > b->_length - offset)
    swm::misuse("MPSMatrix: it ends beyond its buffer");
  if (offset % element_bytes(descriptor.dataType))
    swm::misuse("MPSMatrix: the offset is not a multiple of an element");
  _data = [buffer retain];
  _offset = offset;
  _descriptor = [descriptor retain];
  return self;
}
- (void)dealloc {
  [_data release];
  [_descriptor release];
  [super dealloc];
}
@synthesize data = _data, offset = _offset;
- (NSUInteger)rows {
  return _descriptor.rows;
}
- (NSUInteger)columns {
  return _descriptor.columns;
}
- (NSUInteger)matrices {
  return _descriptor.matrices;
}
- (NSUInteger)rowBytes {
  return _descriptor.rowBytes;
}
- (NSUInteger)matrixBytes {
  return _descriptor.matrixBytes;
}
- (MPSDataType)dataType {
  return _descriptor.dataType;
}
SWM_DEVICE
@end

@implementation MPSKernel
- (void)dealloc {
  [_label release];
  [super dealloc];
}
SWM_LABEL
SWM_DEVICE
@end

@implementation MPSMatrixMultiplication
@synthesize resultMatrixOrigin = _resultMatrixOrigin, leftMatrixOrigin = _leftMatrixOrigin;
@synthesize rightMatrixOrigin = _rightMatrixOrigin;
@synthesize batchStart = _batchStart, batchSize = _batchSize;
- (instancetype)initWithDevice:(id<MTLDevice>)device
                    resultRows:(NSUInteger)resultRows
                 resultColumns:(NSUInteger)resultColumns
               interiorColumns:(NSUInteger)interiorColumns {
  return [self initWithDevice:device
                transposeLeft:NO
               transposeRight:NO
                   resultRows:resultRows
                resultColumns:resultColumns
              interiorColumns:interiorColumns
                        alpha:1
                         beta:0];
}
- (instancetype)initWithDevice:(id<MTLDevice>)device
                 transposeLeft:(BOOL)transposeLeft
                transposeRight:(BOOL)transposeRight
                    resultRows:(NSUInteger)resultRows
                 resultColumns:(NSUInteger)resultColumns
               interiorColumns:(NSUInteger)interiorColumns
                         alpha:(double)alpha
                          beta:(double)beta {
  if (!device) swm::misuse("MPSMatrixMultiplication: nil device");
  if (!resultRows || !resultColumns || !interiorColumns)
    swm::misuse("MPSMatrixMultiplication: a size of 0");
  _transposeLeft = transposeLeft;
  _transposeRight = transposeRight;
  _resultRows = resultRows;
  _resultColumns = resultColumns;
  _interiorColumns = interiorColumns;
  _alpha = alpha;
  _beta = beta;
  _batchSize = ~0ul;
  return self;
}
- (NSUInteger)batchOf:(MPSMatrix*)left with:(MPSMatrix*)right into:(MPSMatrix*)result {
  const NSUInteger all = std::min({left.matrices, right.matrices, result.matrices});
  if (_batchStart >= all) swm::misuse("MPSMatrixMultiplication: batchStart beyond the matrices");
  if (_batchSize != ~0ul && _batchSize > all - _batchStart)
    swm::misuse("MPSMatrixMultiplication: batchSize beyond the matrices");
  return std::min(_batchSize, all - _batchStart);
}
- (View)view:(MPSMatrix*)matrix
        origin:(MTLOrigin)origin
    transposed:(BOOL)transposed
          rows:(NSUInteger)rows
       columns:(NSUInteger)columns
          what:(const char*)what {
  if (!matrix) swm::misuse(std::string("MPSMatrixMultiplication: nil ") + what);
  if (transposed) std::swap(rows, columns);
  if (matrix.rows < origin.x + rows || matrix.columns < origin.y + columns)
    swm::misuse(std::string("MPSMatrixMultiplication: the ") + what + " matrix is too small");
  return {((SwmBuffer*)matrix.data)->_bytes + matrix.offset,
          matrix.rowBytes,
          matrix.matrixBytes,
          origin,
          matrix.dataType == MPSDataTypeFloat16,
          transposed != NO};
}
- (void)encodeToCommandBuffer:(id<MTLCommandBuffer>)commandBuffer
                   leftMatrix:(MPSMatrix*)left
                  rightMatrix:(MPSMatrix*)right
                 resultMatrix:(MPSMatrix*)result {
  SwmCommandBuffer* to = swm::inner(commandBuffer);
  [to checkEncoding];
  const NSUInteger m = _resultRows, n = _resultColumns, k = _interiorColumns;
  const View a = [self view:left
                     origin:_leftMatrixOrigin
                 transposed:_transposeLeft
                       rows:m
                    columns:k
                       what:"left"];
  const View b = [self view:right
                     origin:_rightMatrixOrigin
                 transposed:_transposeRight
                       rows:k
                    columns:n
                       what:"right"];
  const View c = [self view:result
                     origin:_resultMatrixOrigin
                 transposed:NO
                       rows:m
                    columns:n
                       what:"result"];
  const NSUInteger first = _batchStart, count = [self batchOf:left with:right into:result];
  for (MPSMatrix* matrix : {left, right, result}) [to use:matrix.data];
  const double alpha = _alpha, beta = _beta;
  const auto run = [=](std::string&) {
    for (NSUInteger matrix = first; matrix < first + count; matrix++)
      for (NSUInteger i = 0; i < m; i++)
        for (NSUInteger j = 0; j < n; j++) {
          float sum = 0;
          for (NSUInteger l = 0; l < k; l++) sum += a.get(matrix, i, l) * b.get(matrix, l, j);
          const double old = beta == 0 ? 0 : beta * double(c.get(matrix, i, j));
          c.put(matrix, i, j, float(alpha * double(sum) + old));
        }
    return true;
  };
  to->_operations.push_back({run, [to nextEncoder], false, false, "MPSMatrixMultiplication"});
}
@end

BOOL MPSSupportsMTLDevice(id<MTLDevice> device) { return device != nil; }

SwmCommandBuffer* swm::inner(id<MTLCommandBuffer> commandBuffer) {
  if (!commandBuffer) misuse("a nil command buffer");
  if ([commandBuffer isKindOfClass:[MPSCommandBuffer class]])
    return inner(((MPSCommandBuffer*)commandBuffer).commandBuffer);
  return (SwmCommandBuffer*)commandBuffer;
}
