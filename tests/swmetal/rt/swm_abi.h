// The interface between a kernel module (a .metal file compiled for the CPU) and the executor.
// Plain C types and no standard headers: kernels include this file too.
#pragma once

#define SWM_ABI_VERSION 2u
#define SWM_ARGUMENTS 31  // Metal's argument tables have 31 entries
#define SWM_LANES 32      // threads of a SIMD-group

struct swm_dim {
  unsigned x, y, z;
};

// One SIMD-group collective: what each lane brought, and a result that the first lane to ask
// computes for all.
struct swm_exchange {
  unsigned mask;  // lanes that take part
  int is_done;    // result[] is filled
  alignas(64) unsigned char slot[SWM_LANES][64];
  alignas(64) unsigned char result[1024];
};

// What a kernel thread can ask about itself.
struct swm_thread {
  swm_dim grid_position;      // thread_position_in_grid
  swm_dim group_position;     // threadgroup_position_in_grid
  swm_dim position_in_group;  // thread_position_in_threadgroup
  swm_dim group_size;         // threads_per_threadgroup: smaller at the edge of a grid
  swm_dim full_group_size;    // dispatch_threads_per_threadgroup
  swm_dim grid;               // threads_per_grid
  swm_dim groups;             // threadgroups_per_grid
  unsigned index, lane, simd_group, simd_groups, full_simd_groups;
};

// Bound arguments. Threadgroup pointers are filled in by the executor.
struct swm_args {
  void* buffer[SWM_ARGUMENTS];
  unsigned long buffer_bytes[SWM_ARGUMENTS];
  void* group_memory[SWM_ARGUMENTS];
  unsigned long group_bytes[SWM_ARGUMENTS];
};

// What kernels call.
struct swm_api {
  void (*barrier)(int line);
  swm_exchange* (*exchange)(int op, int line, const void* payload, unsigned bytes);
  const swm_thread* (*self)();
  // Storage of a function-scope threadgroup variable; `key` is one address per variable and type.
  void* (*group_variable)(const void* key, unsigned long bytes);
  // The value of row `index` of the module's table of function constants.
  const void* (*constant)(unsigned index);
  int (*is_constant_set)(unsigned index);
  // Ends the calling thread; the command buffer fails with this text. Line 0: no line.
  void (*fail)(const char* what, int detail, int line) __attribute__((noreturn));
};

typedef void (*swm_thunk)(const swm_args*, const swm_thread*);

struct swm_module;

struct swm_kernel {
  const char* name;
  swm_thunk run;
  unsigned long buffers, group_memories;  // masks of the argument indices that must be bound
  unsigned max_threads;                   // [[max_total_threads_per_threadgroup]]; 0: not given
  const unsigned* constants;              // rows of the constant table that it cannot do without
  unsigned constant_count;
  const swm_module* module;
};

struct swm_constant {
  const char* name;
  unsigned index;  // [[function_constant(index)]]
  unsigned type;   // as in MTLDataType; 0: a type that cannot be set
  unsigned bytes;
};

// One .metal file. A shared object holds one or several.
struct swm_module {
  const char* source;  // name of the .metal file
  const swm_kernel* kernels;
  unsigned kernel_count;
  const swm_constant* constants;
  unsigned constant_count;
};

// The two functions that a shared object exports: its modules (`count` of them), and where the
// executor hands over its table.
typedef const swm_module* const* (*swm_modules_function)(unsigned* count);
typedef unsigned (*swm_connect_function)(unsigned abi, const swm_api* api);  // its own version
