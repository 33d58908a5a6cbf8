#include "base/aligned_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "base/checked.h"

namespace tern {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

Error out_of_memory(std::string_view what, std::uint64_t bytes, int number) {
  constexpr std::uint64_t kMiB = 1 << 20;
  return fail(ErrorCode::kOutOfMemory, "{} needs {} bytes ({} MiB) of memory: {}", what, bytes,
              bytes / kMiB + (bytes % kMiB != 0 ? 1 : 0), std::generic_category().message(number));
}

// A zeroed mapping of `bytes` (a multiple of the page) that starts at a multiple of alignment;
// nullptr and errno where the system refuses.
std::byte* map_aligned(std::size_t bytes, std::size_t alignment, std::size_t page) {
  const std::size_t extra = alignment > page ? alignment : 0;
  void* address =
      ::mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  auto* const start = static_cast<std::byte*>(address);
  if (extra == 0) return start;
  const std::size_t misplaced = reinterpret_cast<std::uintptr_t>(start) % alignment;
  const std::size_t head = misplaced == 0 ? 0 : alignment - misplaced;
  if (head != 0) ::munmap(start, head);
  if (extra != head) ::munmap(start + head + bytes, extra - head);
  return start + head;
}

}  // namespace

Result<AlignedBuffer> AlignedBuffer::allocate(std::uint64_t bytes, Options options) {
  TERN_ASSERT(options.alignment != 0 && (options.alignment & (options.alignment - 1)) == 0);
  TERN_ASSERT(options.alignment <= kHugePage);
  AlignedBuffer buffer;
  if (bytes == 0) return buffer;
  // Room for alignment and rounding below the largest object there can be.
  constexpr auto kMost =
      static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max()) - 2 * kHugePage;
  if (bytes > kMost) return out_of_memory(options.what, bytes, ENOMEM);
  const auto size = static_cast<std::size_t>(bytes);

  if (size >= kMapThreshold) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t alignment = options.huge_pages ? kHugePage : options.alignment;
    const std::size_t unit = options.huge_pages ? kHugePage : page;
    const std::size_t mapped = (size + unit - 1) / unit * unit;
    buffer.data_ = map_aligned(mapped, alignment, page);
    if (buffer.data_ == nullptr) return out_of_memory(options.what, bytes, errno);
    buffer.mapped_size_ = mapped;
#if defined(MADV_HUGEPAGE)
    if (options.huge_pages) ::madvise(buffer.data_, mapped, MADV_HUGEPAGE);
#endif
  } else {
    const std::size_t alignment = std::max(options.alignment, sizeof(void*));
    const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
    buffer.data_ = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
    if (buffer.data_ == nullptr) return out_of_memory(options.what, bytes, ENOMEM);
    std::memset(buffer.data_, 0, rounded);
  }
  buffer.size_ = size;
  return buffer;
}

AlignedBuffer::~AlignedBuffer() { release(); }

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_size_(std::exchange(other.mapped_size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  mapped_size_ = std::exchange(other.mapped_size_, 0);
  return *this;
}

void AlignedBuffer::release() noexcept {
  if (mapped_size_ != 0) {
    ::munmap(data_, mapped_size_);
  } else {
    std::free(data_);
  }
}

}  // namespace tern
