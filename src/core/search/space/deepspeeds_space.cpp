#include "core/search/space/deepspeeds_space.hpp"

#include <string>
#include <utility>

namespace dstune {
namespace {

constexpr std::int64_t kUsualBucket = 500'000'000;

AxisGroup axis(const char* key, std::vector<json::value> values) {
  return {{{std::string("/zero_optimization/") + key, std::move(values), {}}}};
}

AxisGroup buckets(const char* key) { return axis(key, {50'000'000, 500'000'000, 1'000'000'000}); }

}  // namespace

json::object deepspeeds_template(int stage) {
  if (stage == 0) return {{"stage", 0}};
  if (stage == 1) {
    return {{"stage", 1},
            {"reduce_bucket_size", kUsualBucket},
            {"allgather_bucket_size", kUsualBucket}};
  }
  json::object zero = {{"stage", stage},
                       {"allgather_partitions", true},
                       {"allgather_bucket_size", kUsualBucket},
                       {"overlap_comm", false},
                       {"reduce_scatter", true},
                       {"reduce_bucket_size", kUsualBucket},
                       {"contiguous_gradients", false}};
  if (stage < 3) return zero;
  zero["stage3_max_live_parameters"] = 1'000'000'000;
  zero["stage3_max_reuse_distance"] = 1'000'000'000;
  zero["stage3_prefetch_bucket_size"] = 500'000'000;
  zero["stage3_param_persistence_threshold"] = 1'000'000;
  zero["stage3_gather_16bit_weights_on_model_save"] = false;
  zero["sub_group_size"] = 1'000'000'000'000;
  return zero;
}

std::vector<AxisGroup> deepspeeds_axes(int stage) {
  if (stage == 0) return {};
  const AxisGroup reduced = buckets("reduce_bucket_size");
  const AxisGroup gathered = buckets("allgather_bucket_size");
  if (stage == 1) return {reduced, gathered};
  std::vector<AxisGroup> axes = {axis("overlap_comm", {true, false}),
                                 axis("reduce_scatter", {false, true}), reduced};
  if (stage == 3) axes.push_back(axis("allgather_partitions", {true, false}));
  axes.push_back(gathered);
  axes.push_back(axis("contiguous_gradients", {false, true}));
  return axes;
}

}  // namespace dstune
