// What is in the key and what is not: every change of an input misses, every move hits.
#include <gtest/gtest.h>

#include <filesystem>
#include <type_traits>

#include "backend/gpu/pipeline_store/fakes_test.h"

namespace tern::gpu {
namespace {

namespace fs = std::filesystem;

// Changes a field in every way that its type has.
void perturb(std::string& value) { value += "x"; }
void perturb(int& value) { ++value; }
void perturb(bool& value) { value = !value; }
void perturb(MathMode& value) {
  value = value == MathMode::kFast ? MathMode::kPrecise : MathMode::kFast;
}
void perturb(std::vector<std::string>& value) { value.emplace_back("NEW=1"); }

// Every variation of the inputs of a compiler in which one leaf is changed.
std::vector<std::pair<std::string, CodeInputs>> variations(const CodeInputs& original) {
  std::vector<std::pair<std::string, CodeInputs>> changed;
  int fields = 0;
  CodeInputs copy = original;
  visit_code_fields(copy, [&](std::string_view name, auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    ++fields;
    const auto take = [&](const std::string& what) {
      changed.emplace_back(std::string(name) + " " + what, copy);
      copy = original;
    };
    if constexpr (std::is_same_v<Field, std::vector<SourceFile>>) {
      for (std::size_t i = 0; i < original.sources.size(); ++i) {
        field[i].text.back() ^= 1;
        take("byte of " + original.sources[i].name);
        field[i].name += "x";
        take("name of " + original.sources[i].name);
      }
      field.push_back({"new.h", ""});
      take("another header");
    } else if constexpr (std::is_same_v<Field, std::vector<Constant>>) {
      perturb(field[0].name);
      take("name");
      perturb(field[0].type);
      take("type");
      perturb(field[0].value);
      take("value");
      field.push_back({"N", "int", "1"});
      take("another");
    } else if constexpr (std::is_same_v<Field, CompileOptions>) {
      int options = 0;
      CompileOptions probe;
      visit_option_fields(probe, [&options](std::string_view, auto&) { ++options; });
      for (int i = 0; i < options; ++i) {
        int at = 0;
        std::string option;
        visit_option_fields(field, [&](std::string_view option_name, auto& value) {
          if (at++ != i) return;
          perturb(value);
          option = option_name;
        });
        take(option);
      }
    } else {
      perturb(field);
      take("");
    }
  });
  EXPECT_EQ(fields, 6);
  return changed;
}

KernelDescription rich_kernel() {
  KernelDescription kernel = fake_kernel("k");
  kernel.code.constants = {{"HEAD", "int", "128"}};
  kernel.code.options.defines = {"A=1"};
  return kernel;
}

// The perturbation test of the key over every input of code generation: each one misses, and what
// is then used is the right kernel.
void expect_every_input_to_miss() {
  const KernelDescription original = rich_kernel();
  Machine machine;
  ASSERT_EQ(machine.expect_right(original), Tier::kOffline);
  ASSERT_EQ(machine.expect_right(original), Tier::kDisk);
  const auto changed = variations(original.code);
  EXPECT_GE(changed.size(), 18u);
  for (const auto& [what, code] : changed) {
    KernelDescription kernel = original;
    kernel.code = code;
    const int before = machine.compiles();
    EXPECT_EQ(machine.expect_right(kernel), Tier::kOffline) << what;
    EXPECT_EQ(machine.compiles(), before + 1) << what;
    EXPECT_EQ(machine.expect_right(kernel), Tier::kDisk) << what;
  }
  EXPECT_EQ(machine.expect_right(original), Tier::kDisk);
}

TEST(PipelineStore, Ps07_EveryInputOfTheGeneratorIsInTheKey) { expect_every_input_to_miss(); }

// All fields of the key struct have a line, and each of them makes another key.
TEST(PipelineStore, Ps26_EveryFieldOfTheKeyMatters) {
  KernelKey key;
  std::vector<std::string> names;
  visit_key_fields(
      key, [&names](std::string_view name, const std::string&) { names.emplace_back(name); });
  EXPECT_EQ(names.size(), sizeof(KernelKey) / sizeof(std::string));
  const std::string base = cache::make_key("cuda", "sm_90a", key)->text();
  std::set<std::string> texts = {base};
  for (std::string KernelKey::*field :
       {&KernelKey::tern, &KernelKey::kernel, &KernelKey::variant, &KernelKey::constants,
        &KernelKey::source, &KernelKey::flags, &KernelKey::target, &KernelKey::compiler,
        &KernelKey::driver, &KernelKey::runtime, &KernelKey::env}) {
    KernelKey other;
    other.*field = "x";
    texts.insert(cache::make_key("cuda", "sm_90a", other)->text());
  }
  EXPECT_EQ(texts.size(), names.size() + 1);
}

// A property of the device that the generator reads arrives as a constant or a define; and where
// one was forgotten, TERN_KERNEL_VERIFY finds the difference in behaviour.
TEST(PipelineStore, Ps08_VerifyFindsWhatTheKeyForgot) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  ASSERT_EQ(machine.expect_right(kernel), Tier::kOffline);
  machine.options.switches.verify = true;
  EXPECT_EQ(machine.expect_right(kernel), Tier::kDisk);
  EXPECT_EQ(machine.compiles(), 2);   // rebuilt beside the hit
  machine.offline->gain = 1.0000001;  // other behaviour, and nothing in the key says so
  const Result<PipelinePtr> pipeline = machine.store()->resolve(kernel);
  ASSERT_FALSE(pipeline.ok());
  const std::string& message = pipeline.error().message();
  EXPECT_NE(message.find("behave differently"), std::string::npos);
  EXPECT_NE(message.find("key of the hit:"), std::string::npos);
  EXPECT_NE(message.find("compiler=" + machine.offline->version), std::string::npos);
  // Bytes are not compared.
  machine.offline->gain = 1;
  machine.offline->has_random_comment = true;
  EXPECT_EQ(machine.expect_right(kernel), Tier::kDisk);
}

// Two devices share a folder: each gets its own code.
TEST(PipelineStore, Ps04_TwoDevicesShareAFolder) {
  Machine first;
  Machine second;
  second.cache_options = first.cache_options;
  second.device.name = "Fake 2";
  second.device.target = "sm_100";
  second.device.accepts = {"sm_100"};
  second.loader->targets = {"sm_100"};
  const KernelDescription kernel = fake_kernel("k");
  for (const Tier expected : {Tier::kOffline, Tier::kDisk, Tier::kDisk}) {
    EXPECT_EQ(first.expect_right(kernel), expected);
    EXPECT_EQ(second.expect_right(kernel), expected);
  }
}

// The target is in the key and in the path.
TEST(PipelineStore, Ps16_TheTargetIsInPathAndKey) {
  Machine machine;
  ASSERT_EQ(machine.expect_right(fake_kernel("k")), Tier::kOffline);
  for (const std::string& name : cache::files_below(machine.folder->path())) {
    EXPECT_NE(name.find("/cuda/sm_90a/"), std::string::npos);
    if (!name.ends_with(".tkc")) continue;
    const std::string bytes = cache::read_file(machine.folder->path() + "/" + name);
    const auto view = cache::parse_entry(bytes_of(bytes));
    EXPECT_EQ(cache::value_of_line(view->key_text, "target"), "sm_90a");
  }
}

// Targets that differ in a suffix alone are different targets.
TEST(PipelineStore, Ps19_TargetsThatDifferInTheSuffix) {
  Machine plain;
  Machine special;
  special.cache_options = plain.cache_options;
  plain.device.target = "sm_90";
  plain.loader->targets = {"sm_90"};
  special.loader->targets = {"sm_90a"};
  const KernelDescription kernel = fake_kernel("k");
  for (const Tier expected : {Tier::kOffline, Tier::kDisk}) {
    EXPECT_EQ(special.expect_right(kernel), expected);
    EXPECT_EQ(plain.expect_right(kernel), expected);
  }
}

// The development tree changes: one byte of any included header misses, and so does another
// generator.
TEST(PipelineStore, Ps09_OneHeaderByteMisses) {
  Machine machine;
  const std::vector<SourceFile> table = {{"k.cu", "#include \"a.h\"\nfn k 32 7 1024 64\n"},
                                         {"a.h", " # include \"b.h\"\n#include <cuda.h>\n"},
                                         {"b.h", "// b\n"},
                                         {"unused.h", "// unused\n"}};
  const auto kernel_of = [](const std::vector<SourceFile>& files) {
    KernelDescription kernel = fake_kernel("k");
    kernel.code.sources = gather_sources("k.cu", files).value();
    return kernel;
  };
  ASSERT_EQ(machine.expect_right(kernel_of(table)), Tier::kOffline);
  std::vector<SourceFile> changed = table;
  changed[2].text[0] = ' ';
  EXPECT_EQ(machine.expect_right(kernel_of(changed)), Tier::kOffline);
  changed = table;
  changed[3].text = "// of no importance\n";
  EXPECT_EQ(machine.expect_right(kernel_of(changed)), Tier::kDisk);
  KernelDescription generated = kernel_of(table);
  generated.code.generator = "hash of another generator";
  EXPECT_EQ(machine.expect_right(generated), Tier::kOffline);
  changed = table;
  changed.erase(changed.begin() + 2);
  const auto missing = gather_sources("k.cu", changed);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message().find("'a.h' includes \"b.h\""), std::string::npos);
}

// Two sources of one name in one process and on one disk: two kernels.
TEST(PipelineStore, Ps10_TwoSourcesOfOneName) {
  Machine machine;
  const KernelDescription first = fake_kernel("k", "// first\n");
  const KernelDescription second = fake_kernel("k", "// second\n");
  const auto store = machine.store();
  const std::vector<KernelDescription> both = {first, second};
  const auto pipelines = store->resolve(both);
  EXPECT_NE(function_of(**pipelines[0]).origin, function_of(**pipelines[1]).origin);
  machine.expect_origin(first, **pipelines[0]);
  machine.expect_origin(second, **pipelines[1]);
  EXPECT_EQ(machine.expect_right(second), Tier::kDisk);
  EXPECT_EQ(machine.expect_right(first), Tier::kDisk);
}

// Another compiler in the same place: its version is another one, so its code is.
TEST(PipelineStore, Ps13_AnotherCompilerInTheSamePlace) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  ASSERT_EQ(machine.expect_right(kernel), Tier::kOffline);
  machine.offline->version = "offline 13.1.10 build 7";
  EXPECT_EQ(machine.expect_right(kernel), Tier::kOffline);
  EXPECT_EQ(machine.expect_right(kernel), Tier::kDisk);
}

// Two builds of one minor version have two keys.
TEST(PipelineStore, Ps44_TwoBuildsOfOneVersion) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  machine.offline->version = "release 13.0, V13.0.88; Build cuda_13.0.r13.0/compiler.36424714_0";
  ASSERT_EQ(machine.expect_right(kernel), Tier::kOffline);
  machine.offline->version = "release 13.0, V13.0.88; Build cuda_13.0.r13.0/compiler.36424715_0";
  EXPECT_EQ(machine.expect_right(kernel), Tier::kOffline);
}

// Only the driver's build changes.
TEST(PipelineStore, Ps27_AnotherDriverBuildMisses) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  ASSERT_EQ(machine.expect_right(kernel), Tier::kOffline);
  machine.device.driver = "580.1 build 4";
  EXPECT_EQ(machine.expect_right(kernel), Tier::kOffline);
  machine.device.driver = "580.1 build 3";
  EXPECT_EQ(machine.expect_right(kernel), Tier::kDisk);
  machine.device.runtime = "13.1";
  EXPECT_EQ(machine.expect_right(kernel), Tier::kOffline);
}

// The compiler's output differs from run to run, and is found again all the same.
TEST(PipelineStore, Ps20_OutputIsNotInTheKey) {
  Machine machine;
  machine.offline->has_random_comment = true;
  const KernelDescription kernel = fake_kernel("k");
  ASSERT_EQ(machine.expect_right(kernel), Tier::kOffline);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(machine.expect_right(kernel), Tier::kDisk);
}

// The toolchain moves (its location changes, its version does not), the folder moves, and the
// compiling process runs elsewhere: hits.
TEST(PipelineStore, Ps12_PlacesAreNotInTheKey) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  ASSERT_EQ(machine.expect_right(kernel), Tier::kOffline);
  Machine moved;
  fs::copy(machine.folder->path(), moved.folder->path(), fs::copy_options::recursive);
  for (const std::string& name : cache::files_below(moved.folder->path())) {
    if (!name.ends_with(".tkc")) continue;
    const std::string bytes = cache::read_file(moved.folder->path() + "/" + name);
    EXPECT_EQ(bytes.find(machine.folder->path()), std::string::npos);
    EXPECT_EQ(bytes.find("/somewhere"), std::string::npos);
  }
  EXPECT_EQ(moved.expect_right(kernel), Tier::kDisk);
  EXPECT_EQ(moved.compiles(), 0);
}

// An old and a new Tern alternate on one folder.
TEST(PipelineStore, Ps32_OldAndNewTernAlternate) {
  Machine machine;
  const KernelDescription kernel = fake_kernel("k");
  for (const Tier expected : {Tier::kOffline, Tier::kDisk, Tier::kDisk}) {
    for (const char* tern : {"1.0", "1.1"}) {
      machine.options.tern = tern;
      EXPECT_EQ(machine.expect_right(kernel), expected);
    }
  }
}

// Nothing is read from a folder of sources: the working folder and the source tree do not matter.
TEST(PipelineStore, Ps30_SourcesComeFromTheExecutable) {
  Machine machine;
  const fs::path before = fs::current_path();
  const TemporaryFolder empty;
  fs::current_path(empty.path());
  EXPECT_EQ(machine.expect_right(fake_kernel("k")), Tier::kOffline);
  EXPECT_EQ(machine.expect_right(fake_kernel("k")), Tier::kDisk);
  EXPECT_TRUE(fs::is_empty(empty.path()));
  fs::current_path(before);
}

TEST(PipelineStore, SourceHashesDoNotDependOnHowBytesAreSplit) {
  EXPECT_NE(source_hash({{"a", "bc"}}), source_hash({{"ab", "c"}}));
  EXPECT_NE(source_hash({{"a", "b"}, {"c", "d"}}), source_hash({{"a", "bcd"}}));
  const std::vector<SourceFile> table = {
      {"m", "#include \"z.h\"\n#include \"a.h\"\n"}, {"a.h", ""}, {"z.h", "#include \"a.h\""}};
  const auto sources = gather_sources("m", table).value();
  ASSERT_EQ(sources.size(), 3u);
  EXPECT_EQ(sources[0].name, "m");
  EXPECT_EQ(sources[1].name, "a.h");
  EXPECT_FALSE(gather_sources("none", table).ok());
}

TEST(PipelineStore, CanonicalTextsAreSorted) {
  CompileOptions options;
  options.defines = {"B=2", "A=1"};
  EXPECT_EQ(canonical_text(options),
            "debug=0;defines=A=1,B=2;language=c++20;math=precise;optimisation=3;registers=0");
  EXPECT_EQ(canonical_text({{"B", "int", "2"}, {"A", "bool", "true"}}), "A=bool:true;B=int:2");
}

}  // namespace
}  // namespace tern::gpu
