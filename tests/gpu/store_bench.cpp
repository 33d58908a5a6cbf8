// Measures how long the pipeline store takes to find all kernels.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "backend/cuda/store/cuda_store.h"
#include "tests/gpu/products_bench.h"

namespace tern::gpu_tests {

void bench_store(const GpuDevice& device) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("tern-store-bench-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  fs::permissions(folder, fs::perms::owner_all);
  const auto run = [&](const char* name, std::vector<gpu::Tier> tiers) {
    cuda::StoreSettings s;
    s.options.switches.tiers = std::move(tiers);
    s.options.tern = "gpu_bench";
    s.options.threads = 8;
    s.nvrtc = cuda::read_nvrtc_search();
    cache::Options c;
    c.base = cache::Base{folder.string(), true, {}};
    c.tern = s.options.tern;
    s.options.cache = cache::Cache::open(std::move(c)).value();
    const auto begin = std::chrono::steady_clock::now();
    cuda::CudaStore store(device.context, device.name, device.architecture, device.cores, s);
    std::size_t good = 0;
    std::string problem;
    for (const auto& p : store.resolve_all()) {
      if (p.ok())
        ++good;
      else
        problem = p.error().message();
    }
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    std::printf("  %-34s %8.1f ms for %zu kernels, %.2f ms each %s\n", name, ms, good,
                ms / static_cast<double>(cuda::kKernelSources.size()), problem.c_str());
  };
  std::printf("\npipeline store\n");
  run("embedded, first (self-tests run)", {gpu::Tier::kEmbedded, gpu::Tier::kDisk});
  run("embedded, again (tests recorded)", {gpu::Tier::kEmbedded, gpu::Tier::kDisk});
  run("NVRTC, cold, 8 threads", {gpu::Tier::kDisk, gpu::Tier::kRuntime});
  run("disk, warm", {gpu::Tier::kDisk});
  run("disk, warm, again", {gpu::Tier::kDisk});
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

}  // namespace tern::gpu_tests
