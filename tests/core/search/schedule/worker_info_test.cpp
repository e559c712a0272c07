#include "core/search/schedule/worker_info.hpp"

#include <exception>

#include <gtest/gtest.h>

#include "core/base/json.hpp"

namespace dstune::worker_info_test {
namespace {

WorkerInfo make_info() {
  WorkerInfo info{3, "node7", 96, {}, 8, 4711, "pid:[4026531836]"};
  info.devices = {
      {"cuda", "Some GPU", 0, 0, false, "its driver is too old", "none", "GPU-5d", 3, 8},
      {"cpu", "Some CPU", Bytes{1} << 40U, Bytes{1} << 39U, true, "", "cpu-gloo"}};
  info.devices.front().limit_is_free_memory = true;
  info.devices.front().is_mig_instance = true;
  info.devices.front().trains_in_bf16 = true;
  info.devices.front().reserves = {{"CUDA context", 500, true}, {"gaps", 300, false, true}};
  info.devices.back().bounds = {{"control group /job (memory.max)", 400, 100, "cgroup 1:2"}};
  info.devices.back().fp32_caveat = "slower elsewhere";
  info.devices.back().product_workspace = {33, 7};
  info.devices.back().found = {"NCCL: 2.28.9 (/lib/libnccl.so.2)", "cuDNN: 9.19.0"};
  info.devices.back().common = {{"NCCL", "2.28.9", true}, {"NCCL_ALGO", "Ring"}};
  info.oom_kills = {"/job", 3, std::nullopt};
  return info;
}

TEST(WorkerInfo, ComesBackFromItsText) {
  EXPECT_EQ(worker_info_from_json(to_json(make_info())), make_info());
}

TEST(WorkerInfo, RejectsADeviceWithoutItsMemory) {
  json::object object = to_json(make_info());
  object["devices"].as_array()[1].as_object().erase("free_memory_bytes");

  EXPECT_THROW(worker_info_from_json(object), std::exception);
}

}  // namespace
}  // namespace dstune::worker_info_test
