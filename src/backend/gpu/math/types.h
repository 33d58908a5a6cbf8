// The one header of names that device sources and host share: fixed-width types and how a shared
// formula is declared. No includes, so that every device compiler takes it.
#pragma once

#if defined(__METAL_VERSION__)
typedef unsigned char tern_u8;
typedef unsigned short tern_u16;
typedef short tern_i16;
typedef unsigned int tern_u32;
typedef int tern_i32;
typedef ulong tern_u64;
typedef long tern_i64;
#define TERN_FORMULA inline
#else
typedef unsigned char tern_u8;
typedef unsigned short tern_u16;
typedef short tern_i16;
typedef unsigned int tern_u32;
typedef int tern_i32;
typedef unsigned long long tern_u64;
typedef long long tern_i64;
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TERN_FORMULA __host__ __device__ inline
#else
#define TERN_FORMULA inline
#endif
#endif

static_assert(sizeof(tern_u16) == 2 && sizeof(tern_u32) == 4 && sizeof(tern_u64) == 8,
              "host and device disagree about the width of a type");
