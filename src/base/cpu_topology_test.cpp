// Threads and memory from made-up machines: SMT, hybrid, containers, missing files.
#include "base/cpu_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "base/control_groups.h"

namespace tern {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::SizeIs;

constexpr std::uint64_t kMiB = 1 << 20;

class Topology : public testing::Test {
 protected:
  Topology() {
    std::string pattern = testing::TempDir() + "tern_topology_XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~Topology() override { fs::remove_all(root_); }

  void put(const fs::path& path, std::string_view text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  void put_cpu(int id, std::string_view core, std::string_view package,
               std::string_view siblings) const {
    const fs::path folder =
        fs::path("sys/devices/system/cpu") / ("cpu" + std::to_string(id)) / "topology";
    put(folder / "core_id", core);
    put(folder / "physical_package_id", package);
    if (!siblings.empty()) put(folder / "thread_siblings_list", siblings);
  }
  // Processors without SMT, all in one package.
  void put_plain_cpus(int count) const {
    put("sys/devices/system/cpu/online", count == 1 ? "0" : "0-" + std::to_string(count - 1));
    for (int id = 0; id < count; ++id) put_cpu(id, std::to_string(id), "0", std::to_string(id));
  }
  [[nodiscard]] CpuTopology read(const std::vector<int>& affinity = {}) const {
    return read_topology(root_, affinity);
  }

  fs::path root_;
};

TEST_F(Topology, CountsPhysicalCoresOfAnSmtMachine) {
  // Four cores; thread siblings are 0 and 4, 1 and 5, ...
  put("sys/devices/system/cpu/online", "0-7");
  for (int id = 0; id < 8; ++id) {
    const std::string core = std::to_string(id % 4);
    put_cpu(id, core, "0", core + "," + std::to_string(id % 4 + 4));
  }
  const CpuTopology t = read();
  EXPECT_THAT(t.cpus, SizeIs(8));
  EXPECT_THAT(t.performance_cores, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(t.default_threads, 4);
  EXPECT_EQ(t.cpus[1].core, t.cpus[5].core);
  EXPECT_NE(t.cpus[1].core, t.cpus[2].core);
  // Both threads of core 1 and one of core 2.
  const CpuTopology masked = read({1, 5, 6});
  EXPECT_THAT(masked.allowed_cpus, ElementsAre(1, 5, 6));
  EXPECT_THAT(masked.performance_cores, ElementsAre(1, 6));
  EXPECT_EQ(masked.default_threads, 2);
}

TEST_F(Topology, CoreIdsOfTwoPackagesAreDifferentCores) {
  put("sys/devices/system/cpu/online", "0-3");
  for (int id = 0; id < 4; ++id) put_cpu(id, std::to_string(id % 2), std::to_string(id / 2), "");
  EXPECT_THAT(read().performance_cores, ElementsAre(0, 1, 2, 3));
}

TEST_F(Topology, OfflineProcessorsDoNotCount) {
  put_plain_cpus(4);
  put("sys/devices/system/cpu/online", "0,2-3");
  EXPECT_THAT(read().allowed_cpus, ElementsAre(0, 2, 3));
  EXPECT_EQ(read().default_threads, 3);
}

TEST_F(Topology, UsesTheBigCoresOfAHybridIntel) {
  // Two big cores with SMT (0-3) and four small ones (4-7).
  put("sys/devices/system/cpu/online", "0-7");
  for (int id = 0; id < 4; ++id) put_cpu(id, std::to_string(id / 2), "0", id < 2 ? "0-1" : "2-3");
  for (int id = 4; id < 8; ++id) put_cpu(id, std::to_string(id), "0", std::to_string(id));
  put("sys/devices/cpu_core/cpus", "0-3");
  put("sys/devices/cpu_atom/cpus", "4-7");
  const CpuTopology t = read();
  EXPECT_THAT(t.performance_cores, ElementsAre(0, 2));
  EXPECT_EQ(t.default_threads, 2);
  EXPECT_TRUE(t.cpus[3].is_performance);
  EXPECT_FALSE(t.cpus[4].is_performance);
  // Bound to small cores, it uses those.
  EXPECT_THAT(read({5, 6, 7}).performance_cores, ElementsAre(5, 6, 7));
}

TEST_F(Topology, UsesTheBigCoresOfAnArmByCapacity) {
  put_plain_cpus(6);
  const char* const capacities[] = {"250", "250", "760", "760", "760", "1024"};
  for (int id = 0; id < 6; ++id) {
    put("sys/devices/system/cpu/cpu" + std::to_string(id) + "/cpu_capacity", capacities[id]);
  }
  EXPECT_THAT(read().performance_cores, ElementsAre(2, 3, 4, 5));
}

TEST_F(Topology, RoundsAQuotaUp) {
  put_plain_cpus(8);
  put("proc/self/cgroup", "0::/");
  put("sys/fs/cgroup/cpu.max", "150000 100000");
  const CpuTopology t = read();
  EXPECT_EQ(t.cpu_quota, 1.5);
  EXPECT_EQ(t.default_threads, 2);
  put("sys/fs/cgroup/cpu.max", "max 100000");
  EXPECT_FALSE(read().cpu_quota);
  EXPECT_EQ(read().default_threads, 8);
  put("sys/fs/cgroup/cpu.max", "10000 100000");
  EXPECT_EQ(read().default_threads, 1);
  put("sys/fs/cgroup/cpu.max", "300000 100000");
  EXPECT_EQ(read().default_threads, 3);
  put("sys/fs/cgroup/cpu.max", "nonsense");
  EXPECT_EQ(read().default_threads, 8);
}

TEST_F(Topology, ReadsVersion1Groups) {
  put_plain_cpus(8);
  put("proc/self/cgroup",
      "12:memory:/docker/abc\n5:cpuset:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/"
      "docker/abc");
  put("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000");
  put("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  put("sys/fs/cgroup/cpuset/docker/abc/cpuset.cpus", "0-5");
  put("sys/fs/cgroup/cpuset/cpuset.cpus", "0-7");
  put("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "1073741824");
  put("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "314572800");
  put("sys/fs/cgroup/memory/docker/abc/memory.stat",
      "inactive_file 1\ntotal_inactive_file 104857600");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  put("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:  100 kB\nMemAvailable:    8388608 kB");
  const CpuTopology t = read();
  EXPECT_EQ(t.cpu_quota, 2.5);
  EXPECT_THAT(t.allowed_cpus, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(t.default_threads, 3);
  EXPECT_EQ(t.total_memory_bytes, 16384 * kMiB);
  EXPECT_EQ(t.memory_limit_bytes, 1024 * kMiB);
  EXPECT_EQ(t.available_memory_bytes, (1024 - 300 + 100) * kMiB);
}

TEST_F(Topology, SeesItsOwnLimitsWhereOnlyItsPartOfTheTreeIsMounted) {
  // As in a container without a group namespace: the path is the host's, the mount is the group
  // itself.
  put_plain_cpus(4);
  put("proc/self/cgroup", "3:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912");
  EXPECT_EQ(read().default_threads, 1);
  EXPECT_EQ(read().memory_limit_bytes, 512 * kMiB);
  EXPECT_EQ(read().available_memory_bytes, 512 * kMiB);
}

TEST_F(Topology, TheStrictestLevelOfNestedGroupsWins) {
  put_plain_cpus(16);
  put("proc/self/cgroup", "0::/system.slice/tern.service/worker");
  const fs::path mount = "sys/fs/cgroup";
  put(mount / "system.slice/tern.service/worker/cpu.max", "max 100000");
  put(mount / "system.slice/tern.service/cpu.max", "800000 100000");
  put(mount / "system.slice/cpu.max", "400000 200000");  // the parent: two processors
  put(mount / "system.slice/tern.service/cpuset.cpus.effective", "2-9");
  put(mount / "system.slice/tern.service/worker/memory.max", "2147483648");
  put(mount / "system.slice/tern.service/worker/memory.current", "1048576");
  put(mount / "system.slice/memory.max", "max");
  put(mount / "system.slice/memory.high", "1073741824");
  put(mount / "system.slice/memory.current", "1063256064");  // all but 10 MiB
  put(mount / "memory.max", "max");
  const CpuTopology t = read();
  EXPECT_EQ(t.cpu_quota, 2.0);
  EXPECT_EQ(t.default_threads, 2);
  EXPECT_THAT(t.allowed_cpus, SizeIs(8));
  EXPECT_EQ(t.memory_limit_bytes, 1024 * kMiB);
  EXPECT_EQ(t.available_memory_bytes, 10 * kMiB);
}

TEST_F(Topology, HybridHierarchiesAreBothRead) {
  put_plain_cpus(8);
  put("proc/self/cgroup", "4:memory:/a\n0::/b");
  put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "104857600");
  put("sys/fs/cgroup/unified/b/cpu.max", "300000 100000");
  EXPECT_EQ(read().default_threads, 3);
  EXPECT_EQ(read().memory_limit_bytes, 100 * kMiB);
}

TEST_F(Topology, AGroupAboveItsLimitHasNothingLeft) {
  put_plain_cpus(1);
  put("proc/self/cgroup", "0::/../outside");
  put("sys/fs/cgroup/memory.max", "1000");
  put("sys/fs/cgroup/memory.current", "2000");
  EXPECT_EQ(read().available_memory_bytes, 0u);
}

TEST_F(Topology, WithoutAnyFileTheAffinityDecides) {
  const CpuTopology t = read({3, 1, 7});
  EXPECT_THAT(t.allowed_cpus, ElementsAre(1, 3, 7));
  EXPECT_EQ(t.default_threads, 3);
  EXPECT_FALSE(t.cpu_quota);
  EXPECT_FALSE(t.total_memory_bytes);
  EXPECT_FALSE(t.available_memory_bytes);
  EXPECT_GE(read({}).default_threads, 1);
}

TEST_F(Topology, ContradictionsAreNoLimit) {
  put_plain_cpus(2);
  EXPECT_THAT(read({8, 9}).allowed_cpus, ElementsAre(0, 1));
}

TEST(TopologyOfThisMachine, IsPlausible) {
  const CpuTopology t = read_topology();
  EXPECT_GE(t.default_threads, 1);
  EXPECT_LE(static_cast<std::size_t>(t.default_threads), t.allowed_cpus.size());
#if defined(__linux__)
  EXPECT_FALSE(process_affinity().empty());
  EXPECT_GT(t.available_memory_bytes.value(), 0u);
  EXPECT_LE(t.available_memory_bytes.value(), t.total_memory_bytes.value());
#endif
}

TEST(CpuList, ReadsRangesAndNumbers) {
  EXPECT_THAT(parse_cpu_list("0-3,8,10-11").value(), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(parse_cpu_list("5,1,5").value(), ElementsAre(1, 5));
  EXPECT_TRUE(parse_cpu_list("").value().empty());
  for (const char* text :
       {"a", "1-", "-1", "3-1", "1--2", "1,,2", "0-65536", "99999999999999999999", "1 2"}) {
    EXPECT_FALSE(parse_cpu_list(text)) << text;
  }
}

TEST(SystemFiles, NumbersOfLines) {
  const std::string_view text = "MemTotal:  12 kB\ninactive_file 7\nactive_file 9\nempty:\n";
  EXPECT_EQ(number_of_line(text, "MemTotal:"), 12u);
  EXPECT_EQ(number_of_line(text, "active_file"), 9u);
  EXPECT_FALSE(number_of_line(text, "Mem"));
  EXPECT_FALSE(number_of_line(text, "empty:"));
  EXPECT_FALSE(parse_decimal("-1"));
  EXPECT_FALSE(parse_decimal("12x"));
  EXPECT_EQ(parse_decimal("18446744073709551615"), 18446744073709551615u);
  EXPECT_FALSE(parse_decimal("18446744073709551616"));
}

}  // namespace
}  // namespace tern
