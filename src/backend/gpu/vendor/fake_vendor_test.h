// A vendor for tests: it records, fails on command, computes in double on host memory when the
// submission runs, and notices what a real library would crash on.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend/gpu/vendor/vendor_api.h"

namespace tern::gpu::test {

enum class Step : std::uint8_t {
  kPlan,
  kKernel,
  kDescriptor,
  kView,
  kProbe,
  kProduct,
  kConversion,
  kEpilogue
};
inline constexpr int kSteps = 8;
enum class Failure : std::uint8_t { kError, kNull, kThrow, kThrowOddly };

// Commands that were encoded and not yet run; the "command buffer" of one submission.
class FakeContext final : public backend::EncodeContext {
 public:
  // Workspace of so many bytes on `device`, poisoned.
  FakeContext(std::uint64_t device, std::uint64_t workspace_bytes);

  Result<AllocationRef> workspace(std::uint64_t bytes) override;
  void retain(std::shared_ptr<const void> object) override {
    retained_.push_back(std::move(object));
  }
  Result<void> before_vendor_call() override;

  // A command of the device's own, for which an encoder is opened if none is.
  void own_command(std::function<void()> command);
  void vendor_command(std::function<void()> command);
  // Runs the commands, unless `status` is an error, and lets go of what was retained. The returned
  // status is that of the "device", whatever the wait says (BR-08).
  Result<void> complete(Result<void> status = {});

  [[nodiscard]] std::size_t commands() const { return commands_.size(); }
  [[nodiscard]] std::size_t retained() const { return retained_.size(); }
  [[nodiscard]] const std::string& order() const { return order_; }  // "o" own, "v" vendor
  [[nodiscard]] int overlaps() const { return overlaps_; }  // vendor calls beside an open encoder

 private:
  const std::uint64_t device_;
  const std::uint64_t workspace_bytes_;
  AllocationRef workspace_;
  std::vector<std::shared_ptr<const void>> retained_;
  std::vector<std::function<void()>> commands_;
  std::string order_;
  bool is_encoder_open_ = false;
  int overlaps_ = 0;
};

class FakeVendor final : public VendorApi {
 public:
  explicit FakeVendor(std::uint64_t device = 1);

  backend::VendorLimits row;                           // change before use
  VendorObjects made_objects{true, true, true, true};  // change before use
  std::uint64_t plan_workspace = 0;
  std::atomic<bool> probe_answer{true};
  // Called inside of every encode_product, before anything else; a slow encode, a drop in it, ...
  std::function<void(const ProductCall&)> on_product;

  // The `nth` call of that step from now on (1: the next) fails. Each arms once.
  void fail_nth(Step step, int nth, Failure how);

  [[nodiscard]] int made(Step step) const { return calls_[static_cast<std::size_t>(step)]; }
  // Objects of that kind that exist now.
  [[nodiscard]] int live(Step step) const { return *live_[static_cast<std::size_t>(step)]; }
  [[nodiscard]] int live() const;
  // What a library would have crashed on: a kernel object in two threads, a view of dead memory,
  // an object of another device.
  [[nodiscard]] int violations() const { return *violations_; }

  [[nodiscard]] std::uint64_t device() const override { return device_; }
  [[nodiscard]] const backend::VendorLimits& limits() const override { return row; }
  [[nodiscard]] VendorObjects objects() const override { return made_objects; }
  Result<std::unique_ptr<VendorPlan>> make_plan(const PlanKey& key) override;
  Result<std::unique_ptr<VendorKernel>> make_kernel(const KernelKey& key) override;
  Result<std::unique_ptr<VendorDescriptor>> make_descriptor(const DescriptorKey& key) override;
  Result<std::unique_ptr<VendorView>> make_view(const ViewKey& key, const AllocationRef& memory,
                                                const VendorDescriptor* descriptor) override;
  Result<bool> probe(const backend::Operand& operand) override;
  Result<void> encode_product(const ProductCall& call, backend::EncodeContext& context) override;
  Result<void> encode_conversion(const ConversionCall& call,
                                 backend::EncodeContext& context) override;
  Result<void> encode_epilogue(const EpilogueCall& call, backend::EncodeContext& context) override;

 private:
  using Counter = std::shared_ptr<std::atomic<int>>;
  // The failure that was armed for this call, if any. Throws for the throwing kinds.
  enum class Outcome : std::uint8_t { kWorks, kError, kNull };
  Outcome enter(Step step);
  template <class Object, class Made>
  Result<std::unique_ptr<Object>> make(Step step, Made&& made);
  void check_call(const ProductCall& call);

  const std::uint64_t device_;
  mutable std::mutex mutex_;
  std::array<int, kSteps> armed_{};
  std::array<Failure, kSteps> how_{};
  std::array<std::atomic<int>, kSteps> calls_{};
  std::array<Counter, kSteps> live_;
  Counter violations_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace tern::gpu::test
