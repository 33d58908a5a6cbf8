// Options, injected faults and counts, and the C functions through which tests set them.
#include "control.h"

#include <cstdlib>

#include "live_objects.h"
#include "support.h"

namespace swm {

Control& control() {
  static Control* const instance = new Control;  // threads of queues may outlive main
  return *instance;
}

void Control::reset() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    options_ = options_from_environment();
    device_ = DeviceAnswers();
    commit_code_ = 1;
    commit_text_ = "an injected failure";
  }
  for (int i = 0; i < SWM_EVENTS; i++) counts_[i] = fail_at_[i] = 0;
  allocation_limit_ = 0;
  is_absent_ = is_lost_ = false;
  read_environment();
}

void Control::read_environment() {
  const auto number = [](const char* name) {
    const auto value = environment(name);
    return value ? std::strtoull(value->c_str(), nullptr, 0) : 0;
  };
  is_absent_ = environment("SWM_NO_DEVICE").has_value();
  allocation_limit_ = number("SWM_FAIL_ALLOC_ABOVE");
  fail_at_[SWM_ALLOCATION] = number("SWM_FAIL_NTH_ALLOCATION");
  fail_at_[SWM_PIPELINE] = number("SWM_FAIL_NTH_PIPELINE");
  fail_at_[SWM_COMMAND_BUFFER] = number("SWM_FAIL_NTH_COMMAND_BUFFER");
  fail_at_[SWM_COMMIT] = number("SWM_FAIL_NTH_COMMIT");
}

Options Control::options() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return options_;
}
void Control::set_options(const Options& options) {
  const std::lock_guard<std::mutex> lock(mutex_);
  options_ = options;
}
DeviceAnswers Control::device() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return device_;
}
void Control::set_device(const DeviceAnswers& answers) {
  const std::lock_guard<std::mutex> lock(mutex_);
  device_ = answers;
}

bool Control::fails(swm_event event) {
  const std::uint64_t n = counts_[event].fetch_add(1, std::memory_order_relaxed) + 1;
  const bool hit = n == fail_at_[event].load(std::memory_order_relaxed);
  return hit || is_lost_;
}
void Control::fail_nth(swm_event event, std::uint64_t n) {
  fail_at_[event] = n ? counts_[event] + n : 0;
}
bool Control::too_large(std::uint64_t bytes) const {
  const std::uint64_t limit = allocation_limit_;
  return limit && bytes > limit;
}

void Control::set_commit_error(long code, const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  commit_code_ = code;
  commit_text_ = text;
}
long Control::commit_error(std::string& text) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  text = commit_text_;
  return commit_code_;
}

}  // namespace swm

using swm::control;

void swm_reset(void) { control().reset(); }
void swm_set_order(enum swm_order order, uint64_t seed) {
  swm::Options o = control().options();
  o.order = static_cast<swm::Order>(order);
  o.seed = seed;
  control().set_options(o);
}
enum swm_order swm_get_order(void) {
  return static_cast<enum swm_order>(control().options().order);
}
void swm_set_workers(unsigned workers) {
  swm::Options o = control().options();
  o.workers = workers;
  control().set_options(o);
}
void swm_set_strict(int strict) {
  swm::Options o = control().options();
  o.strict = strict != 0;
  control().set_options(o);
}
void swm_fail_nth(enum swm_event event, uint64_t n) { control().fail_nth(event, n); }
uint64_t swm_count(enum swm_event event) { return control().counted(event); }
void swm_set_no_device(int absent) { control().set_absent(absent != 0); }
void swm_set_fail_allocations_above(uint64_t bytes) { control().set_allocation_limit(bytes); }
void swm_lose_device(void) { control().lose(); }
void swm_set_commit_error(long code, const char* text) {
  control().set_commit_error(code, text ? text : "");
}
void swm_set_device(const struct swm_device* device) {
  swm::DeviceAnswers answers;
  if (device) {
    if (device->name) answers.name = device->name;
    if (device->architecture) answers.architecture = device->architecture;
    answers.apple_family = device->apple_family;
    answers.has_unified_memory = device->has_unified_memory != 0;
    answers.working_set = device->recommended_working_set;
    answers.max_buffer = device->max_buffer_length;
  }
  control().set_device(answers);
}
uint64_t swm_live_objects(const char* class_name) {
  Class wanted = class_name ? objc_getClass(class_name) : nullptr;
  if (class_name && !wanted) return 0;
  return swm::live_objects().count((void*)wanted);
}
