// The driver as a struct of function pointers: filled from the system's library at run time, or by
// a test's fake.
#pragma once

#include <string>

#include "backend/cuda/driver/driver_types.h"
#include "base/error.h"

namespace tern::cuda {

// X(member, symbol, return type and parameters). The symbol carries the version of the documented
// signature. Struct, loader and fake are made from this one list.
#define TERN_CUDA_DRIVER(X)                                                                        \
  X(init, cuInit, (unsigned flags))                                                                \
  X(driver_version, cuDriverGetVersion, (int* version))                                            \
  X(error_name, cuGetErrorName, (Status status, const char** text))                                \
  X(error_text, cuGetErrorString, (Status status, const char** text))                              \
  X(device_count, cuDeviceGetCount, (int* count))                                                  \
  X(device_get, cuDeviceGet, (DeviceNumber * device, int ordinal))                                 \
  X(device_name, cuDeviceGetName, (char* name, int bytes, DeviceNumber device))                    \
  X(device_bytes, cuDeviceTotalMem_v2, (std::size_t * bytes, DeviceNumber device))                 \
  X(device_attribute, cuDeviceGetAttribute, (int* value, int attribute, DeviceNumber device))      \
  X(context_retain, cuDevicePrimaryCtxRetain, (ContextHandle * *context, DeviceNumber device))     \
  X(context_release, cuDevicePrimaryCtxRelease_v2, (DeviceNumber device))                          \
  X(context_set, cuCtxSetCurrent, (ContextHandle * context))                                       \
  X(memory_info, cuMemGetInfo_v2, (std::size_t * available, std::size_t * total))                  \
  X(memory_allocate, cuMemAlloc_v2, (Address * address, std::size_t bytes))                        \
  X(memory_free, cuMemFree_v2, (Address address))                                                  \
  X(host_allocate, cuMemHostAlloc, (void** memory, std::size_t bytes, unsigned flags))             \
  X(host_free, cuMemFreeHost, (void* memory))                                                      \
  X(copy_to_device, cuMemcpyHtoDAsync_v2,                                                          \
    (Address to, const void* from, std::size_t bytes, StreamHandle* stream))                       \
  X(copy_to_host, cuMemcpyDtoHAsync_v2,                                                            \
    (void* to, Address from, std::size_t bytes, StreamHandle* stream))                             \
  X(copy_on_device, cuMemcpyDtoDAsync_v2,                                                          \
    (Address to, Address from, std::size_t bytes, StreamHandle * stream))                          \
  X(fill_bytes, cuMemsetD8Async,                                                                   \
    (Address to, unsigned char value, std::size_t count, StreamHandle* stream))                    \
  X(stream_create, cuStreamCreate, (StreamHandle * *stream, unsigned flags))                       \
  X(stream_destroy, cuStreamDestroy_v2, (StreamHandle * stream))                                   \
  X(stream_synchronize, cuStreamSynchronize, (StreamHandle * stream))                              \
  X(capture_begin, cuStreamBeginCapture_v2, (StreamHandle * stream, int mode))                     \
  X(capture_end, cuStreamEndCapture, (StreamHandle * stream, GraphHandle * *graph))                \
  X(graph_nodes, cuGraphGetNodes,                                                                  \
    (GraphHandle * graph, GraphNodeHandle * *nodes, std::size_t * count))                          \
  X(graph_instantiate, cuGraphInstantiateWithFlags,                                                \
    (GraphExecHandle * *exec, GraphHandle * graph, unsigned long long flags))                      \
  X(graph_destroy, cuGraphDestroy, (GraphHandle * graph))                                          \
  X(graph_exec_destroy, cuGraphExecDestroy, (GraphExecHandle * exec))                              \
  X(graph_launch, cuGraphLaunch, (GraphExecHandle * exec, StreamHandle * stream))                  \
  X(event_create, cuEventCreate, (EventHandle * *event, unsigned flags))                           \
  X(event_destroy, cuEventDestroy_v2, (EventHandle * event))                                       \
  X(event_record, cuEventRecord, (EventHandle * event, StreamHandle * stream))                     \
  X(event_query, cuEventQuery, (EventHandle * event))                                              \
  X(event_synchronize, cuEventSynchronize, (EventHandle * event))                                  \
  X(event_elapsed, cuEventElapsedTime,                                                             \
    (float* milliseconds, EventHandle* begin, EventHandle* end))                                   \
  X(stream_wait_event, cuStreamWaitEvent,                                                          \
    (StreamHandle * stream, EventHandle * event, unsigned flags))                                  \
  X(module_load, cuModuleLoadData, (ModuleHandle * *module, const void* image))                    \
  X(module_unload, cuModuleUnload, (ModuleHandle * module))                                        \
  X(module_function, cuModuleGetFunction,                                                          \
    (FunctionHandle * *function, ModuleHandle * module, const char* name))                         \
  X(module_global, cuModuleGetGlobal_v2,                                                           \
    (Address * address, std::size_t * bytes, ModuleHandle * module, const char* name))             \
  X(function_attribute, cuFuncGetAttribute, (int* value, int attribute, FunctionHandle* function)) \
  X(function_set_attribute, cuFuncSetAttribute,                                                    \
    (FunctionHandle * function, int attribute, int value))                                         \
  X(launch, cuLaunchKernelEx,                                                                      \
    (const LaunchConfig* config, FunctionHandle* function, void** parameters, void** extra))       \
  X(link_create, cuLinkCreate_v2,                                                                  \
    (unsigned option_count, int* options, void** values, LinkHandle** link))                       \
  X(link_add, cuLinkAddData_v2,                                                                    \
    (LinkHandle * link, int kind, void* data, std::size_t bytes, const char* name,                 \
     unsigned option_count, int* options, void** values))                                          \
  X(link_complete, cuLinkComplete, (LinkHandle * link, void** cubin, std::size_t* bytes))          \
  X(link_destroy, cuLinkDestroy, (LinkHandle * link))

// Every member returns a Status. Thread safety is the driver's own: any thread, with the device's
// context current (Context::make_current).
struct DriverApi {
#define TERN_MEMBER(member, symbol, parameters) Status(*member) parameters = nullptr;
  TERN_CUDA_DRIVER(TERN_MEMBER)
#undef TERN_MEMBER
  std::string path;  // of the library, for messages
};

// Oldest driver that Tern works with, as the driver counts: 1,000 * major + 10 * minor of CUDA.
inline constexpr int kOldestDriver = 12000;

// Loads libcuda.so.1 and starts it. Errors (kDevice): no driver; a symbol is missing or the version
// is too old, with the version found and the one needed; no device.
[[nodiscard]] Result<DriverApi> load_driver_api();

// The checks after loading: starts the driver, compares versions. For fakes too.
[[nodiscard]] Result<void> start_driver(const DriverApi& api);

// "13.0" of 13000.
[[nodiscard]] std::string version_text(int version);

// Nothing, or kDevice (kOutOfMemory for code 2) with the call, the driver's name and its sentence.
[[nodiscard]] Result<void> check(const DriverApi& api, Status status, const char* call);

// Codes after which the context can do nothing more: the device is lost for this process.
[[nodiscard]] bool is_sticky(Status status);

}  // namespace tern::cuda
