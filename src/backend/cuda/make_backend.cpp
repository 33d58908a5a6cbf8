#include "backend/cuda/make_backend.h"

#include "backend/cuda/cuda_backend.h"

namespace tern::cuda {

std::unique_ptr<backend::Backend> make_backend() { return std::make_unique<CudaBackend>(); }

}  // namespace tern::cuda
