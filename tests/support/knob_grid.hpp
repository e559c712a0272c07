// The grid of the tests that run ZeRO with every knob: how a batch is split, and what is
// configured.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/json.hpp"

namespace dstune::test {

struct Split {
  int stage = 0;
  int ranks = 1;
  std::int64_t accumulation = 1;
};

std::vector<Split> all_splits();
/// Those of stage 3.
std::vector<Split> sharded_splits();
/// For gtest's parameterised tests.
std::string name_of_split(const testing::TestParamInfo<Split>& split);

/// Buckets hold 300 elements: of tensors with 12 to 576 elements several share a bucket, and the
/// matrices are larger than one. Sub-groups of stage 3 hold a few tensors each.
///
/// epsilon 1e-3: with 1e-8 Adam's first update is lr * sign(g), so that rounding noise in a
/// gradient whose true value is zero (the key bias of attention) would move a parameter by the full
/// lr. With gradients around 0.3 / sqrt(4248) = 5e-3, 1e-3 damps noise and still leaves the second
/// moment to decide.
/// @param zero_keys  further keys of zero_optimization
json::object config_of(const Split& split, std::string_view zero_keys = "{}");

/// Stage 0 reads none of these knobs. One rank has nobody to communicate with, and four take no
/// other path than three: two and three ranks get all combinations.
std::vector<const char*> knobs_of(const Split& split);

/// Tensors have 12 to 576 elements, layers 1,884, the model 4,248. Every knob of stage 3 that
/// decides what is gathered when, how, and how gradients are reduced.
std::span<const char* const> stage_3_knobs();

}  // namespace dstune::test
