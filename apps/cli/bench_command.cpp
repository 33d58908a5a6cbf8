// `tern bench`: speed of prompts and of generation, with the share of what memory allows.
#include <chrono>
#include <ctime>
#include <random>
#include <thread>

#include "cli/bench_plan.h"
#include "cli/bench_report.h"
#include "cli/cli_error.h"
#include "cli/commands.h"
#include "cli/file_text.h"
#include "cli/model_setup.h"
#include "cli/progress_bar.h"
#include "cli/utf8_text.h"

namespace tern::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm time{};
  gmtime_r(&now, &time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", time.tm_year + 1900, time.tm_mon + 1,
                     time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec);
}

// One model on one engine. Token ids are random: speed does not depend on what they say.
class Bencher {
 public:
  Bencher(const Model& model, std::int64_t batch, const CancelToken& cancel)
      : model_(model),
        session_(take(model.info().path, model.session({}))),
        batch_(batch),
        cancel_(cancel) {}

  void fill(std::int64_t depth) {
    if (session_.position() > depth) session_.truncate(depth);
    if (session_.position() < depth) prompt(depth - session_.position());
  }
  void prompt(std::int64_t tokens) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens));
    for (std::int32_t& id : ids) id = random_id();
    const std::int32_t begin = model_.tokenizer().begin_token();
    if (session_.position() == 0 && model_.tokenizer().adds_begin_token() && begin >= 0)
      ids[0] = begin;
    const std::span<const std::int32_t> all = ids;
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t count = std::min(all.size() - at, static_cast<std::size_t>(batch_));
      evaluate(all.subspan(at, count), at + count == all.size() ? 1 : 0);
      at += count;
    }
  }
  void generate(std::int64_t tokens) {
    for (std::int64_t i = 0; i < tokens; ++i) {
      const std::int32_t id = random_id();
      evaluate({&id, 1}, 1);
    }
  }
  // Nanoseconds of one run.
  std::uint64_t run(const BenchTest& test) {
    fill(test.depth);
    const Clock::time_point start = Clock::now();
    if (test.prompt > 0) prompt(test.prompt);
    generate(test.generate);
    const auto elapsed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start);
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(elapsed.count()));
  }

 private:
  void evaluate(std::span<const std::int32_t> ids, std::int64_t last_rows) {
    (void)take(model_.info().path, session_.evaluate(ids, last_rows, {}, cancel_));
  }
  std::int32_t random_id() {
    return std::uniform_int_distribution<std::int32_t>(
        0, static_cast<std::int32_t>(model_.info().vocabulary - 1))(random_);
  }

  const Model& model_;
  Session session_;
  std::int64_t batch_;
  CancelToken cancel_;
  std::minstd_rand random_{1};
};

ModelOptions options_of(const Arguments& arguments, const BenchSetup& setup, std::int64_t context) {
  ModelOptions options;
  options.context = context;
  options.batch_rows = static_cast<int>(setup.ubatch);
  options.activations =
      arguments.text(Flag::kActivations) == "f32" ? Activations::kF32 : Activations::kI12;
  options.exact = arguments.on(Flag::kExact);
  options.cache_type_k = cache_type("-ctk", setup.type_k);
  options.cache_type_v = cache_type("-ctv", setup.type_v);
  options.load_mode = load_mode(arguments);
  options.check_tensors = arguments.on(Flag::kCheckTensors);
  options.layout = arguments.text(Flag::kLayout);
  options.pins = arguments.list(Flag::kPin);
  return options;
}

// Everything that lives as long as the command.
class BenchRunner {
 public:
  BenchRunner(const Context& context, const BenchPlan& plan, std::vector<BenchReport*> reports)
      : context_(context),
        plan_(plan),
        reports_(std::move(reports)),
        bar_(progress_mode(context.arguments.text(Flag::kBenchProgress),
                           context.arguments.on(Flag::kQuiet), context.terminal)) {
    bar_.leave_no_line();
  }

  void run() {
    for (const BenchSetup& setup : plan_.setups) run_setup(setup);
  }
  [[nodiscard]] std::size_t finished() const { return finished_; }

 private:
  void run_setup(const BenchSetup& setup) {
    const Arguments& arguments = context_.arguments;
    EngineOptions engine_choice;
    engine_choice.threads = setup.threads;
    const Engine engine = Engine::create(engine_choice).value();
    const Model model =
        take(setup.model, engine.open(setup.model, options_of(arguments, setup, plan_.context()),
                                      bar_.callback(), context_.interrupt.token()));
    bar_.close();
    if (!has_warned_) {
      print_warnings(engine.warnings());
      print_warnings(model.info().warnings);
      has_warned_ = true;
    }
    BenchRow row;
    row.setup = setup;
    row.setup.threads = engine.threads();
    row.info = std::make_shared<const ModelInfo>(model.info());
    row.processor = engine.processor_name();
    row.use_mmap = load_mode(arguments) != LoadMode::kRead;
    row.ceiling_gbps = engine.measure_read_gbps();
    Bencher bencher(model, setup.batch, context_.interrupt.token());
    for (const BenchTest& test : plan_.tests) {
      row.test = test;
      run_test(bencher, row);
      for (BenchReport* report : reports_) report->add(row);
      ++finished_;
    }
  }

  void run_test(Bencher& bencher, BenchRow& row) {
    const Arguments& arguments = context_.arguments;
    if (finished_ > 0) wait(arguments.number(Flag::kBenchDelay));
    if (arguments.on(Flag::kBenchWarmup)) {
      // One prompt of the test's length, one generated token.
      bencher.run({row.test.prompt, row.test.generate > 0 ? 1 : 0, 0, 1});
      bencher.fill(0);
    }
    row.test_time = utc_now();
    row.samples_ns.clear();
    for (std::int64_t i = 0; i < row.test.repetitions; ++i) {
      show(row.test, i);
      row.samples_ns.push_back(bencher.run(row.test));
    }
    show(row.test, row.test.repetitions);
  }

  void show(const BenchTest& test, std::int64_t done) {
    const std::string name = test.name();
    bar_.report({name, "runs", static_cast<std::uint64_t>(done),
                 static_cast<std::uint64_t>(test.repetitions), done == test.repetitions});
  }

  void wait(double seconds) const {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds));
    while (Clock::now() < end) {
      if (context_.interrupt.requested())
        throw Error(ErrorCode::kCancelled, "bench: while waiting");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  const Context& context_;
  const BenchPlan& plan_;
  std::vector<BenchReport*> reports_;
  ProgressBar bar_;
  std::size_t finished_ = 0;
  bool has_warned_ = false;
};

}  // namespace

int bench_command(Context& context) {
  const Arguments& arguments = context.arguments;
  check_device(arguments);
  const BenchPlan plan = bench_plan(arguments);
  print_settings(context);
  std::optional<BenchBaseline> baseline;
  if (arguments.has(Flag::kBenchCompare)) {
    const std::string path = arguments.text(Flag::kBenchCompare);
    baseline =
        BenchBaseline::parse(path, read_file(path, InputLimit::kMeasured, context.interrupt));
  }
  const BenchBaseline* other = baseline ? &*baseline : nullptr;
  BenchReport out(arguments.text(Flag::kBenchOutput), plan, other,
                  [&](std::string_view text) { context.output.write(text); });
  BenchReport err(arguments.text(Flag::kBenchOutputErr), plan, other,
                  [](std::string_view text) { write_to_stderr(text); });
  std::size_t finished = 0;
  try {
    BenchRunner runner(context, plan, {&out, &err});
    try {
      runner.run();
    } catch (...) {
      finished = runner.finished();
      throw;
    }
  } catch (const Error& error) {
    out.finish();
    err.finish();
    if (error.code() != ErrorCode::kCancelled) throw;
    print_line(fmt::format("interrupted: {} finished tests were kept", finished));
    return context.interrupt.exit_code();
  }
  out.finish();
  err.finish();
  return kExitOk;
}

}  // namespace tern::cli
