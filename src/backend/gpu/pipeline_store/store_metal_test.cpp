// What differs on Metal: libraries instead of cubins, constants at load, the archive of pipelines.
#include <gtest/gtest.h>

#include "backend/gpu/pipeline_store/fakes_test.h"

namespace tern::gpu {
namespace {

// A device that makes pipelines slowly, but for those that are in its archive.
class ArchivingLoader final : public FakeLoader {
 public:
  std::string archive;  // names of pipelines
  std::string opened_path;
  int made = 0;  // pipelines that were not in the archive
  bool refuses_archive = false;

  [[nodiscard]] Result<LoadedEntry> find(Module& module, const EntryPoint& entry_point,
                                         const std::vector<Constant>& constants) override {
    const std::string name = entry_point.name + " " + canonical_text(constants) + "\n";
    if (archive.find(name) == std::string::npos) {
      ++made;
      is_changed_ = true;
      archive += name;
    }
    return FakeLoader::find(module, entry_point, constants);
  }
  [[nodiscard]] bool has_archive() const override { return true; }
  [[nodiscard]] Result<void> open_archive(const std::string& path) override {
    opened_path = path;
    is_changed_ = false;
    archive.clear();
    if (!path.empty() && refuses_archive) return fail(ErrorCode::kInvalidFile, "not mine");
    if (!path.empty()) archive = cache::read_file(path);
    return {};
  }
  [[nodiscard]] Result<bool> write_archive(const std::string& path) override {
    if (is_changed_) cache::write_file(path, archive);
    return std::exchange(is_changed_, false);
  }

 private:
  bool is_changed_ = false;
};

struct MetalMachine : Machine {
  std::shared_ptr<ArchivingLoader> metal;

  MetalMachine() {
    device.backend = "metal";
    device.target = "applegpu_g16s";
    device.accepts = {"applegpu_g16s"};
    offline->makes = PayloadKind::kMetallib;
    runtime->makes = PayloadKind::kMetallib;
    restart();
  }
  // Another process: the device has forgotten everything.
  void restart() {
    metal = std::make_shared<ArchivingLoader>();
    metal->targets = {"applegpu_g16s"};
    loader = metal;
  }
};

TEST(PipelineStore, MetalLibrariesAreKeptAndFoundAgain) {
  MetalMachine machine;
  const KernelDescription kernel = fake_kernel("k");
  EXPECT_EQ(machine.expect_right(kernel), Tier::kOffline);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(machine.expect_right(kernel), Tier::kDisk);
  EXPECT_EQ(machine.compiles(), 1);
}

// Constants of a pipeline: one library, two pipelines, two self-test records.
TEST(PipelineStore, ConstantsAtLoadShareOneLibrary) {
  MetalMachine machine;
  std::vector<KernelDescription> kernels(2, fake_kernel("k"));
  kernels[0].load_constants = {{"HEAD", "uint", "64"}};
  kernels[1].load_constants = {{"HEAD", "uint", "128"}};
  const auto store = machine.store();
  for (const auto& pipeline : store->resolve(kernels)) ASSERT_TRUE(pipeline.ok());
  EXPECT_EQ(store->reports().size(), 2u);
  EXPECT_EQ(store->reports()[0].key, store->reports()[1].key);
  EXPECT_EQ(machine.metal->made, 2);
  EXPECT_EQ(machine.metal->loads, 1);
  EXPECT_EQ(machine.compiles(), 1);
  const auto cache = cache::Cache::open(machine.cache_options).value();
  int libraries = 0;
  int records = 0;
  for (const cache::ListedEntry& listed : cache->list()) {
    const PayloadKind kind = cache->read_listed(listed)->kind();
    libraries += kind == PayloadKind::kMetallib ? 1 : 0;
    records += kind == PayloadKind::kSelfTest ? 1 : 0;
  }
  EXPECT_EQ(libraries, 1);
  EXPECT_EQ(records, 2);
}

// The second start makes no pipeline; its archive came from a private file that is gone.
TEST(PipelineStore, FinishedPipelinesLieInAnArchiveOnDisk) {
  MetalMachine machine;
  const std::vector<KernelDescription> kernels = {fake_kernel("a"), fake_kernel("b")};
  for (const auto& pipeline : machine.store()->resolve(kernels)) ASSERT_TRUE(pipeline.ok());
  EXPECT_EQ(machine.metal->made, 2);
  machine.restart();
  for (const auto& pipeline : machine.store()->resolve(kernels)) ASSERT_TRUE(pipeline.ok());
  EXPECT_EQ(machine.metal->made, 0);
  EXPECT_FALSE(machine.metal->opened_path.empty());
  EXPECT_FALSE(std::filesystem::exists(machine.metal->opened_path));
  EXPECT_TRUE(cache::strays_below(machine.folder->path()).empty());
  // Another build of the system: another archive.
  machine.restart();
  machine.device.driver = "25A123";
  for (const auto& pipeline : machine.store()->resolve(kernels)) ASSERT_TRUE(pipeline.ok());
  EXPECT_EQ(machine.metal->made, 2);
}

TEST(PipelineStore, AnArchiveThatTheDeviceRefusesIsMadeAnew) {
  MetalMachine machine;
  const KernelDescription kernel = fake_kernel("k");
  ASSERT_TRUE(machine.store()->resolve(kernel).ok());
  machine.restart();
  machine.metal->refuses_archive = true;
  EXPECT_EQ(machine.store()->resolve(kernel).value()->report.tier, Tier::kDisk);
  EXPECT_EQ(machine.metal->made, 1);
  EXPECT_TRUE(machine.metal->opened_path.empty());
  machine.restart();
  ASSERT_TRUE(machine.store()->resolve(kernel).ok());
  EXPECT_EQ(machine.metal->made, 0);
}

}  // namespace
}  // namespace tern::gpu
