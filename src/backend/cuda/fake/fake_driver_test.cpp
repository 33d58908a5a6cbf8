// The functions of the fake driver.
#include "backend/cuda/fake/fake_driver_test.h"

#include <cstdlib>
#include <cstring>

#include "backend/cuda/kernels/kernels.h"

namespace tern::cuda {
namespace {

FakeDriver* current = nullptr;

void* memory_at(Address address) { return reinterpret_cast<void*>(address); }

}  // namespace

// The driver's functions; each asks first whether it is to fail.
struct FakeCalls {
  static FakeDriver& fake() { return *current; }
  template <class F>
  static Status call(const char* symbol, F&& f) {
    const std::lock_guard lock(fake().mutex_);
    const Status status = fake().enter(symbol);
    return status != kSuccess ? status : f(fake());
  }
  template <class F>
  static Status done(const char* symbol, F&& f) {
    return call(symbol, [&](FakeDriver& d) {
      f(d);
      return kSuccess;
    });
  }

  static void fill_queries(DriverApi& api) {
    api.init = [](unsigned) { return call("cuInit", [](FakeDriver& d) { return d.init_status; }); };
    api.driver_version = [](int* version) {
      return done("cuDriverGetVersion", [&](FakeDriver& d) { *version = d.version; });
    };
    api.error_name = [](Status, const char** text) {
      *text = "FAKE_ERROR";
      return kSuccess;
    };
    api.error_text = [](Status, const char** text) {
      *text = "the fake was told to fail";
      return kSuccess;
    };
    api.device_count = [](int* count) {
      return done("cuDeviceGetCount", [&](FakeDriver& d) { *count = d.devices; });
    };
    api.device_get = [](DeviceNumber* device, int ordinal) {
      return done("cuDeviceGet", [&](FakeDriver&) { *device = ordinal; });
    };
    api.device_name = [](char* name, int bytes, DeviceNumber) {
      return done("cuDeviceGetName", [&](FakeDriver&) {
        std::strncpy(name, "Fake H200", static_cast<std::size_t>(bytes));
      });
    };
    api.device_bytes = [](std::size_t* bytes, DeviceNumber) {
      return done("cuDeviceTotalMem", [&](FakeDriver& d) { *bytes = d.memory_bytes; });
    };
    api.device_attribute = [](int* value, int attribute, DeviceNumber) {
      return done("cuDeviceGetAttribute", [&](FakeDriver& d) { *value = d.attributes[attribute]; });
    };
    api.context_retain = [](ContextHandle** context, DeviceNumber) {
      return done("cuDevicePrimaryCtxRetain", [&](FakeDriver& d) {
        ++d.contexts_;
        *context = reinterpret_cast<ContextHandle*>(&d);
      });
    };
    api.context_release = [](DeviceNumber) {
      return done("cuDevicePrimaryCtxRelease", [](FakeDriver& d) { --d.contexts_; });
    };
    api.context_set = [](ContextHandle*) { return done("cuCtxSetCurrent", [](FakeDriver&) {}); };
  }

  static void fill_memory(DriverApi& api) {
    api.memory_info = [](std::size_t* available, std::size_t* total) {
      return done("cuMemGetInfo", [&](FakeDriver& d) {
        *total = d.memory_bytes;
        *available = d.memory_bytes - d.used_;
      });
    };
    api.memory_allocate = [](Address* address, std::size_t bytes) {
      return call("cuMemAlloc", [&](FakeDriver& d) {
        if (bytes > d.memory_bytes - d.used_) return kOutOfMemoryStatus;
        std::vector<std::byte> block(bytes + 256);
        const auto at = (reinterpret_cast<Address>(block.data()) + 255) / 256 * 256;
        d.memory_[at] = std::move(block);
        d.used_ += bytes;
        ++d.live_;
        *address = at;
        return kSuccess;
      });
    };
    api.memory_free = [](Address address) {
      return call("cuMemFree", [&](FakeDriver& d) {
        const auto found = d.memory_.find(address);
        if (found == d.memory_.end()) return 1;
        d.used_ -= found->second.size() - 256;
        d.memory_.erase(found);
        --d.live_;
        return kSuccess;
      });
    };
    api.host_allocate = [](void** memory, std::size_t bytes, unsigned) {
      return done("cuMemHostAlloc", [&](FakeDriver& d) {
        *memory = std::malloc(bytes);
        ++d.live_;
      });
    };
    api.host_free = [](void* memory) {
      return done("cuMemFreeHost", [&](FakeDriver& d) {
        std::free(memory);
        --d.live_;
      });
    };
    api.copy_to_device = [](Address to, const void* from, std::size_t bytes, StreamHandle*) {
      return done("cuMemcpyHtoDAsync",
                  [&](FakeDriver&) { std::memcpy(memory_at(to), from, bytes); });
    };
    api.copy_to_host = [](void* to, Address from, std::size_t bytes, StreamHandle*) {
      return done("cuMemcpyDtoHAsync",
                  [&](FakeDriver&) { std::memcpy(to, memory_at(from), bytes); });
    };
    api.copy_on_device = [](Address to, Address from, std::size_t bytes, StreamHandle*) {
      return done("cuMemcpyDtoDAsync",
                  [&](FakeDriver&) { std::memmove(memory_at(to), memory_at(from), bytes); });
    };
    api.fill_bytes = [](Address to, unsigned char value, std::size_t count, StreamHandle*) {
      return done("cuMemsetD8Async",
                  [&](FakeDriver&) { std::memset(memory_at(to), value, count); });
    };
  }

  static void fill_streams(DriverApi& api) {
    api.stream_create = [](StreamHandle** stream, unsigned) {
      return done("cuStreamCreate",
                  [&](FakeDriver& d) { *stream = d.make_object<StreamHandle>(); });
    };
    api.stream_destroy = [](StreamHandle*) {
      return done("cuStreamDestroy", [](FakeDriver& d) { --d.live_; });
    };
    api.stream_synchronize = [](StreamHandle*) {
      return done("cuStreamSynchronize", [](FakeDriver&) {});
    };
    api.stream_wait_event = [](StreamHandle*, EventHandle*, unsigned) {
      return done("cuStreamWaitEvent", [](FakeDriver&) {});
    };
    api.event_create = [](EventHandle** event, unsigned) {
      return done("cuEventCreate", [&](FakeDriver& d) { *event = d.make_object<EventHandle>(); });
    };
    api.event_destroy = [](EventHandle*) {
      return done("cuEventDestroy", [](FakeDriver& d) { --d.live_; });
    };
    api.event_record = [](EventHandle*, StreamHandle*) {
      return done("cuEventRecord", [](FakeDriver&) {});
    };
    api.event_query = [](EventHandle*) {
      return call("cuEventQuery",
                  [](FakeDriver& d) { return d.never_passes ? kNotReady : kSuccess; });
    };
    api.event_synchronize = [](EventHandle*) {
      return done("cuEventSynchronize", [](FakeDriver&) {});
    };
    api.event_elapsed = [](float* milliseconds, EventHandle*, EventHandle*) {
      return done("cuEventElapsedTime", [&](FakeDriver&) { *milliseconds = 1; });
    };
  }

  static void fill_graphs(DriverApi& api) {
    api.capture_begin = [](StreamHandle*, int) {
      return done("cuStreamBeginCapture", [](FakeDriver& d) {
        d.is_capturing_ = true;
        d.capture_ = {};
      });
    };
    api.capture_end = [](StreamHandle*, GraphHandle** graph) {
      const std::lock_guard lock(fake().mutex_);
      fake().is_capturing_ = false;  // also where it fails
      return done("cuStreamEndCapture", [&](FakeDriver& d) {
        *graph = d.make_object<GraphHandle>();
        d.graphs_[*graph] = d.capture_;
      });
    };
    api.graph_nodes = [](GraphHandle* graph, GraphNodeHandle**, std::size_t* count) {
      return done("cuGraphGetNodes",
                  [&](FakeDriver& d) { *count = d.graphs_[graph].launches.size(); });
    };
    api.graph_instantiate = [](GraphExecHandle** exec, GraphHandle* graph, unsigned long long) {
      return done("cuGraphInstantiate", [&](FakeDriver& d) {
        *exec = d.make_object<GraphExecHandle>();
        d.graphs_[*exec] = d.graphs_[graph];
      });
    };
    api.graph_destroy = [](GraphHandle*) {
      return done("cuGraphDestroy", [](FakeDriver& d) { --d.live_; });
    };
    api.graph_exec_destroy = [](GraphExecHandle*) {
      return done("cuGraphExecDestroy", [](FakeDriver& d) { --d.live_; });
    };
    api.graph_launch = [](GraphExecHandle* exec, StreamHandle*) {
      return done("cuGraphLaunch", [&](FakeDriver& d) {
        for (const FakeDriver::Launched& launch : d.graphs_[exec].launches) d.run(launch);
      });
    };
  }

  static void fill_modules(DriverApi& api) {
    api.module_load = [](ModuleHandle** module, const void*) {
      return done("cuModuleLoadData",
                  [&](FakeDriver& d) { *module = d.make_object<ModuleHandle>(); });
    };
    api.module_unload = [](ModuleHandle*) {
      return done("cuModuleUnload", [](FakeDriver& d) { --d.live_; });
    };
    api.module_function = [](FunctionHandle** function, ModuleHandle*, const char* name) {
      return done("cuModuleGetFunction", [&](FakeDriver& d) {
        *function = d.make_object<FunctionHandle>();
        --d.live_;  // goes with its module
        d.functions_[*function] = name;
      });
    };
    api.module_global = [](Address* address, std::size_t* bytes, ModuleHandle*, const char* name) {
      return call("cuModuleGetGlobal", [&](FakeDriver& d) -> Status {
        for (const KernelInfo& kernel : kKernels) {
          if (std::string(kernel.entry) + "_params_mark" != name) continue;
          auto& mark = d.marks_[name];
          mark = std::make_unique<std::array<std::uint64_t, 2>>(
              d.params_mark[0] != 0
                  ? d.params_mark
                  : std::array<std::uint64_t, 2>{kernel.params_bytes, kernel.params_layout});
          *address = reinterpret_cast<Address>(mark->data());
          *bytes = sizeof *mark;
          return kSuccess;
        }
        return kNotFoundStatus;
      });
    };
    api.function_attribute = [](int* value, int attribute, FunctionHandle*) {
      return done("cuFuncGetAttribute", [&](FakeDriver& d) {
        *value = attribute == kMaxThreads ? d.threads_of_functions : 32;
      });
    };
    api.function_set_attribute = [](FunctionHandle*, int, int) {
      return done("cuFuncSetAttribute", [](FakeDriver&) {});
    };
    api.launch = [](const LaunchConfig* config, FunctionHandle* function, void** parameters,
                    void**) {
      return done("cuLaunchKernelEx", [&](FakeDriver& d) {
        FakeDriver::Launched launch;
        launch.entry = d.functions_[function];
        launch.config = *config;
        launch.is_early = config->attribute_count > 0;
        std::memcpy(&launch.weights, parameters[0], sizeof(Address));
        std::memcpy(&launch.arena, parameters[1], sizeof(Address));
        std::memcpy(&launch.block, parameters[2], sizeof(Address));
        std::memcpy(launch.params.data(), parameters[3], launch.params.size());
        if (d.is_capturing_)
          d.capture_.launches.push_back(launch);
        else
          d.run(launch);
      });
    };
    api.link_create = [](unsigned, int*, void**, LinkHandle** link) {
      return done("cuLinkCreate", [&](FakeDriver& d) { *link = d.make_object<LinkHandle>(); });
    };
    api.link_add = [](LinkHandle*, int, void*, std::size_t, const char*, unsigned, int*, void**) {
      return done("cuLinkAddData", [](FakeDriver&) {});
    };
    api.link_complete = [](LinkHandle*, void** cubin, std::size_t* bytes) {
      return done("cuLinkComplete", [&](FakeDriver&) {
        static char linked[] = "linked cubin";
        *cubin = linked;
        *bytes = sizeof linked;
      });
    };
    api.link_destroy = [](LinkHandle*) {
      return done("cuLinkDestroy", [](FakeDriver& d) { --d.live_; });
    };
  }
};

FakeDriver::FakeDriver() {
  current = this;
  DriverApi api;
  api.path = "fake";
  FakeCalls::fill_queries(api);
  FakeCalls::fill_memory(api);
  FakeCalls::fill_streams(api);
  FakeCalls::fill_graphs(api);
  FakeCalls::fill_modules(api);
  api_ = std::make_shared<const DriverApi>(api);
}

FakeDriver::~FakeDriver() { current = nullptr; }

Status FakeDriver::enter(const char* symbol) {
  const int number = ++calls_[symbol];
  for (const auto& [nth, status] : failures_[symbol])
    if (nth == number) return status;
  return kSuccess;
}

void FakeDriver::run(const Launched& launch) {
  launched_.push_back(launch);
  if (kernel) kernel(launch);
}

void FakeDriver::fail(const std::string& symbol, int nth, Status status) {
  const std::lock_guard lock(mutex_);
  failures_[symbol].emplace_back(calls_[symbol] + nth, status);
}
int FakeDriver::calls(const std::string& symbol) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(symbol);
  return found == calls_.end() ? 0 : found->second;
}
std::vector<FakeDriver::Launched> FakeDriver::launched() const {
  const std::lock_guard lock(mutex_);
  return launched_;
}
std::size_t FakeDriver::live_objects() const {
  const std::lock_guard lock(mutex_);
  return live_;
}
std::size_t FakeDriver::allocated_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_;
}
int FakeDriver::retained_contexts() const {
  const std::lock_guard lock(mutex_);
  return contexts_;
}

}  // namespace tern::cuda
