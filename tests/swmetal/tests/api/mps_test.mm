// MPSMatrix, MPSMatrixMultiplication and MPSCommandBuffer against plain loops.
#import <MetalPerformanceShaders/MetalPerformanceShaders.h>

#include <cmath>
#include <vector>

#include "api_fixture.h"

namespace swmetal_test {
namespace {

struct Problem {
  bool transpose_left, transpose_right;
  MPSDataType type;
  double alpha, beta;
  NSUInteger matrices;
};

class Mps : public Api {
 protected:
  static constexpr NSUInteger kM = 5, kN = 7, kK = 9;

  static NSUInteger element(MPSDataType type) { return type == MPSDataTypeFloat16 ? 2 : 4; }
  static float value(NSUInteger matrix, NSUInteger i, NSUInteger j) {
    return static_cast<float>((3 * matrix + 5 * i + 7 * j) % 11) - 5.0f;
  }
  static float get(id<MTLBuffer> b, NSUInteger at, MPSDataType type) {
    const char* p = static_cast<const char*>([b contents]) + at;
    return type == MPSDataTypeFloat16 ? static_cast<float>(*reinterpret_cast<const _Float16*>(p))
                                      : *reinterpret_cast<const float*>(p);
  }
  static void put(id<MTLBuffer> b, NSUInteger at, MPSDataType type, float v) {
    char* p = static_cast<char*>([b contents]) + at;
    if (type == MPSDataTypeFloat16) {
      *reinterpret_cast<_Float16*>(p) = static_cast<_Float16>(v);
    } else {
      *reinterpret_cast<float*>(p) = v;
    }
  }
  // Rows one element wider than needed, so that strides are seen.
  MPSMatrix* matrix(NSUInteger rows, NSUInteger columns, MPSDataType type, NSUInteger matrices,
                    bool fill) {
    const NSUInteger row_bytes = (columns + 1) * element(type), offset = 16;
    MPSMatrixDescriptor* d = [MPSMatrixDescriptor matrixDescriptorWithRows:rows
                                                                   columns:columns
                                                                  matrices:matrices
                                                                  rowBytes:row_bytes
                                                               matrixBytes:rows * row_bytes
                                                                  dataType:type];
    id<MTLBuffer> b = buffer(offset + matrices * rows * row_bytes);
    for (NSUInteger m = 0; fill && m < matrices; m++)
      for (NSUInteger i = 0; i < rows; i++)
        for (NSUInteger j = 0; j < columns; j++)
          put(b, offset + (m * rows + i) * row_bytes + j * element(type), type, value(m, i, j));
    return [[[MPSMatrix alloc] initWithBuffer:b offset:offset descriptor:d] autorelease];
  }
  static float at(MPSMatrix* a, NSUInteger m, NSUInteger i, NSUInteger j) {
    return get([a data],
               [a offset] + m * [a matrixBytes] + i * [a rowBytes] + j * element([a dataType]),
               [a dataType]);
  }
  MPSMatrixMultiplication* product(const Problem& p) {
    return [[[MPSMatrixMultiplication alloc] initWithDevice:device
                                              transposeLeft:p.transpose_left
                                             transposeRight:p.transpose_right
                                                 resultRows:kM
                                              resultColumns:kN
                                            interiorColumns:kK
                                                      alpha:p.alpha
                                                       beta:p.beta] autorelease];
  }
};

TEST_F(Mps, MultipliesEveryForm) {
  const std::vector<Problem> problems = {
      {false, false, MPSDataTypeFloat32, 1, 0, 1},  {true, false, MPSDataTypeFloat32, 1, 0, 1},
      {false, true, MPSDataTypeFloat32, 0.5, 2, 1}, {true, true, MPSDataTypeFloat32, 1, 1, 3},
      {false, true, MPSDataTypeFloat16, 1, 0, 2},   {false, false, MPSDataTypeFloat16, 2, -1, 1}};
  for (const Problem& p : problems) {
    MPSMatrix* a =
        matrix(p.transpose_left ? kK : kM, p.transpose_left ? kM : kK, p.type, p.matrices, true);
    MPSMatrix* b =
        matrix(p.transpose_right ? kN : kK, p.transpose_right ? kK : kN, p.type, p.matrices, true);
    // With beta 0 the old result is NaN, and must not be read.
    MPSMatrix* c = matrix(kM, kN, p.type, p.matrices, p.beta != 0);
    id<MTLCommandBuffer> commands = [queue commandBuffer];
    [product(p) encodeToCommandBuffer:commands leftMatrix:a rightMatrix:b resultMatrix:c];
    [commands commit];
    [commands waitUntilCompleted];
    for (NSUInteger m = 0; m < p.matrices; m++)
      for (NSUInteger i = 0; i < kM; i++)
        for (NSUInteger j = 0; j < kN; j++) {
          double want = 0;
          for (NSUInteger k = 0; k < kK; k++)
            want += static_cast<double>(p.transpose_left ? value(m, k, i) : value(m, i, k)) *
                    static_cast<double>(p.transpose_right ? value(m, j, k) : value(m, k, j));
          want = p.alpha * want + (p.beta != 0 ? p.beta * static_cast<double>(value(m, i, j)) : 0);
          // Whole and half numbers below 2048: exact in half too.
          ASSERT_EQ(static_cast<double>(at(c, m, i, j)), want) << m << " " << i << " " << j;
        }
  }
}

TEST_F(Mps, WrapsACommandBufferThatIsOpen) {
  id<MTLBuffer> out = buffer({0});
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  id<MTLComputeCommandEncoder> e = [commands computeCommandEncoder];
  const uint32_t one = 1;
  [e setComputePipelineState:pipeline(@"step")];
  [e setBuffer:out offset:0 atIndex:0];
  [e setBytes:&one length:4 atIndex:1];
  [e dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  [e endEncoding];
  MPSCommandBuffer* wrapped = [MPSCommandBuffer commandBufferWithCommandBuffer:commands];
  const Problem p = {false, false, MPSDataTypeFloat32, 1, 0, 1};
  MPSMatrix* c = matrix(kM, kN, MPSDataTypeFloat32, 1, false);
  [product(p) encodeToCommandBuffer:wrapped
                         leftMatrix:matrix(kM, kK, MPSDataTypeFloat32, 1, true)
                        rightMatrix:matrix(kK, kN, MPSDataTypeFloat32, 1, true)
                       resultMatrix:c];
  e = [commands computeCommandEncoder];
  [e setComputePipelineState:pipeline(@"step")];
  [e setBuffer:out offset:0 atIndex:0];
  [e setBytes:&one length:4 atIndex:1];
  [e dispatchThreads:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(1, 1, 1)];
  [e endEncoding];
  EXPECT_EQ([wrapped rootCommandBuffer], commands);
  [commands commit];
  [wrapped waitUntilCompleted];
  EXPECT_EQ([wrapped status], MTLCommandBufferStatusCompleted);
  EXPECT_EQ(words(out)[0], 3u);
  EXPECT_FALSE(std::isnan(at(c, 0, kM - 1, kN - 1)));
}

TEST_F(Mps, CommitAndContinueGoesOnWithANewOne) {
  MPSCommandBuffer* wrapped = [MPSCommandBuffer commandBufferFromCommandQueue:queue];
  id<MTLCommandBuffer> first = [[[wrapped commandBuffer] retain] autorelease];
  [wrapped commitAndContinue];
  EXPECT_NE([wrapped commandBuffer], first);
  [first waitUntilCompleted];
  [wrapped commit];
  [wrapped waitUntilCompleted];
}

TEST_F(Mps, OriginsAndBatchesSelect) {
  const Problem p = {false, false, MPSDataTypeFloat32, 1, 0, 3};
  MPSMatrix* a = matrix(kM + 2, kK, p.type, 3, true);
  MPSMatrix* b = matrix(kK, kN, p.type, 3, true);
  MPSMatrix* c = matrix(kM, kN, p.type, 3, false);
  MPSMatrixMultiplication* mm = product(p);
  [mm setLeftMatrixOrigin:MTLOriginMake(2, 0, 0)];
  [mm setBatchStart:1];
  [mm setBatchSize:1];
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  [mm encodeToCommandBuffer:commands leftMatrix:a rightMatrix:b resultMatrix:c];
  [commands commit];
  [commands waitUntilCompleted];
  double want = 0;
  for (NSUInteger k = 0; k < kK; k++)
    want += static_cast<double>(value(1, 2, k)) * static_cast<double>(value(1, k, 0));
  EXPECT_EQ(static_cast<double>(at(c, 1, 0, 0)), want);
  EXPECT_TRUE(std::isnan(at(c, 0, 0, 0)));
  EXPECT_TRUE(std::isnan(at(c, 2, 0, 0)));
}

TEST_F(Mps, ChecksItsUse) {
  EXPECT_EQ([MPSMatrixDescriptor rowBytesForColumns:5 dataType:MPSDataTypeFloat16], 16u);
  EXPECT_TRUE(MPSSupportsMTLDevice(device));
  id<MTLBuffer> small = buffer({0, 0});
  MPSMatrixDescriptor* d = [MPSMatrixDescriptor matrixDescriptorWithRows:2
                                                                 columns:2
                                                                rowBytes:8
                                                                dataType:MPSDataTypeFloat32];
  EXPECT_DEATH([[MPSMatrix alloc] initWithBuffer:small descriptor:d], "ends beyond its buffer");
  EXPECT_DEATH([MPSMatrixDescriptor matrixDescriptorWithRows:1
                                                     columns:4
                                                    rowBytes:8
                                                    dataType:MPSDataTypeFloat32],
               "smaller than a row");
  const Problem p = {false, false, MPSDataTypeFloat32, 1, 0, 1};
  MPSMatrix* a = matrix(kM, kK, p.type, 1, true);
  MPSMatrix* c = matrix(kM, kN, p.type, 1, false);
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  EXPECT_DEATH([product(p) encodeToCommandBuffer:commands
                                      leftMatrix:a
                                     rightMatrix:a
                                    resultMatrix:c],
               "the right matrix is too small");
  EXPECT_DEATH(
      {
        [commands computeCommandEncoder];
        [product(p) encodeToCommandBuffer:commands leftMatrix:a rightMatrix:a resultMatrix:c];
      },
      "a second encoder");
}

}  // namespace
}  // namespace swmetal_test
