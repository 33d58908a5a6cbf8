// A small model of packed weights and what it must answer, from the reference functions alone.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "backend/metal/metal_backend.h"
#include "base/error.h"
#include "program/builder.h"
#include "program/passes/passes.h"
#include "reference/rms_norm.h"
#include "swmetal/swmetal.h"
#include "tests/parity/metal/expectation.h"
#include "tests/parity/metal/rig.h"

namespace tern::metal_tests {

// logits = table * (y of the last rows), y = x + wide * norm(x), x = table[ids]. Its weights differ
// with the seed.
class SmallModel {
 public:
  SmallModel(std::int64_t hidden, std::int64_t vocabulary, unsigned seed)
      : hidden_(hidden), vocabulary_(vocabulary) {
    std::mt19937 random(seed);
    table_blocks_ = random_q1(vocabulary, hidden, random);
    wide_blocks_ = random_q1(hidden, hidden, random);
    norm_values_ = random_row(hidden, random);
    const auto packed = quant::Format::kQ1G128;
    table_ = add("table", packed, vocabulary, hidden, program::kUseLookup | program::kUseMatmul,
                 std::as_bytes(std::span(table_blocks_)));
    norm_ = add("norm", quant::Format::kF32, 1, hidden, program::kUseVector,
                std::as_bytes(std::span(norm_values_)));
    wide_ = add("wide", packed, hidden, hidden, program::kUseMatmul,
                std::as_bytes(std::span(wide_blocks_)));
  }

  [[nodiscard]] program::WeightSet& weights() { return set_; }
  [[nodiscard]] std::vector<std::byte>& table_blocks() { return table_blocks_; }
  [[nodiscard]] program::Program program(int rows = 4, int output_rows = 2) const {
    program::Builder b("small", {rows, 1024}, output_rows, set_);
    b.region("layer", 0);
    const auto x = b.embed(table_);
    const auto y = b.add(x, b.linear(b.rms_norm(x, norm_, 1e-6F), wide_));
    b.region("head");
    b.output("logits", b.linear(b.gather_rows(y), table_));
    return program::run_passes(std::move(b).finish(), program::Activations::kI12);
  }
  // Rows by token id and nothing else: a step that costs next to nothing.
  [[nodiscard]] program::Program lookup() const {
    program::Builder b("lookup", {1, 1024}, 1, set_);
    b.region("head");
    b.output("rows", b.gather_rows(b.embed(table_)));
    return std::move(b).finish();
  }

  [[nodiscard]] std::vector<float> embedding(std::int32_t id) const {
    std::vector<float> x(static_cast<std::size_t>(hidden_));
    const auto groups = static_cast<std::size_t>(hidden_ / 128);
    for (std::size_t g = 0; g < groups; ++g)
      quant::Q1G128::decode_block(&table_blocks_[(static_cast<std::size_t>(id) * groups + g) * 18],
                                  &x[g * 128]);
    return x;
  }
  [[nodiscard]] std::vector<float> logits(std::int32_t id) const {
    std::vector<float> x = embedding(id);
    std::vector<float> normed(x.size());
    reference::rms_norm(x.data(), norm_values_.data(), static_cast<int>(hidden_), 1e-6F,
                        normed.data());
    const auto product = expected_product(wide_blocks_, hidden_, quantized(normed));
    for (std::size_t k = 0; k < x.size(); ++k) x[k] += product[k];
    return expected_product(table_blocks_, vocabulary_, quantized(x));
  }

 private:
  program::WeightId add(const char* name, quant::Format format, std::int64_t rows,
                        std::int64_t inputs, int uses, std::span<const std::byte> bytes) {
    return set_.add(
        {name, format, rows, inputs, static_cast<std::uint8_t>(uses), {{name, bytes, rows}}});
  }
  std::int64_t hidden_, vocabulary_;
  std::vector<std::byte> table_blocks_, wide_blocks_;
  std::vector<float> norm_values_;
  program::WeightSet set_;
  program::WeightId table_ = 0, norm_ = 0, wide_ = 0;
};

// Objects of the emulator that are alive, once no more than `most` are: what a step used goes on a
// thread of the queue's, shortly after its end. Gives up after some seconds.
[[nodiscard]] inline std::uint64_t live_objects(const char* class_name, std::uint64_t most) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (swm_live_objects(class_name) > most && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return swm_live_objects(class_name);
}

struct Loaded {
  std::shared_ptr<backend::Device> device;
  std::unique_ptr<backend::Executable> executable;
};

[[nodiscard]] inline backend::PlanOptions plan_options() {
  backend::PlanOptions options;
  options.limits = {4, 2, 2, 4};
  return options;
}

[[nodiscard]] inline Result<std::shared_ptr<backend::Device>> open_device(
    const metal::DeviceOptions& options = test_options()) {
  const metal::MetalBackend backend(options);
  TERN_ASSIGN(const metal::DeviceInfo info, backend.device_info());
  TERN_ASSIGN(std::unique_ptr<backend::Device> device, backend.open(info.profile));
  return std::shared_ptr<backend::Device>(std::move(device));
}

[[nodiscard]] inline Result<Loaded> load(SmallModel& model, const program::Program& program,
                                         std::shared_ptr<backend::Device> device = nullptr) {
  Loaded l{std::move(device), nullptr};
  if (!l.device) {
    TERN_ASSIGN(l.device, open_device());
  }
  TERN_ASSIGN(const auto plan,
              metal::MetalBackend().plan(program, l.device->profile(), plan_options()));
  TERN_ASSIGN(auto weights, l.device->upload(model.weights(), {}, {}));
  TERN_ASSIGN(auto states, l.device->make_states({}, {}));
  TERN_ASSIGN(l.executable, l.device->load(plan, weights, states));
  return l;
}

[[nodiscard]] inline program::BatchBlock block(const std::vector<std::int32_t>& ids) {
  program::BatchBlock b;
  program::BatchSequence s;
  s.row_count = static_cast<std::uint32_t>(ids.size());
  b.add_sequence(s, ids.data(), nullptr);
  b.output_rows = {static_cast<std::uint32_t>(ids.size() - 1)};
  return b;
}

// The first output row of a step.
[[nodiscard]] inline Result<std::vector<float>> step(const Loaded& l,
                                                     const program::BatchBlock& b) {
  TERN_ASSIGN(const auto s, l.device->submit(*l.executable, b, {}));
  TERN_TRY(l.device->wait(*l.executable, s, backend::kNoDeadline));
  TERN_ASSIGN(const backend::OutputRows rows, l.device->output(*l.executable, s, 0));
  const auto row = rows.row(0);
  return std::vector<float>(row.begin(), row.end());
}

}  // namespace tern::metal_tests
