#include <gtest/gtest.h>
#include "tests/parity/metal/rig.h"
TEST(A,B){ auto r = tern::metal_tests::Rig::open(); ASSERT_TRUE(r); }
