#include "core/search/feasibility/memory_beside_plan.hpp"

#include "core/base/text.hpp"
#include "core/device/backend_list.hpp"

namespace dstune {
namespace {

// PyTorch 2.1 on an A100, with the kernels loaded that are used.
constexpr Bytes kContext = Bytes{481} << 20U;
// Planning constants of NVIDIA's aiconfigurator for 2 and for 4 to 8 GPUs.
constexpr Bytes kNcclOfTwo = 342'000'000;
constexpr Bytes kNccl = 392'000'000;
// As measured on an H200 (docs/measurements.md), where the plan itself has not those of a GPU.
constexpr Bytes kWorkspaces = Bytes{65} << 20U;

}  // namespace

std::vector<MemoryReserve> memory_beside_plan(const RunSettings& settings, int ranks) {
  if (traits_of_backend(settings.backend).computes_on_host) return {};
  std::vector<MemoryReserve> beside = {{"CUDA context", kContext}};
  if (ranks > 1) beside.push_back({"NCCL", ranks == 2 ? kNcclOfTwo : kNccl});
  if (settings.product_workspace == ProductWorkspace{}) {
    beside.push_back({"cuBLAS workspaces", kWorkspaces});
  }
  return beside;
}

std::string describe_beside_plan(const RunSettings& settings, int ranks) {
  const std::vector<MemoryReserve> beside = memory_beside_plan(settings, ranks);
  if (beside.empty()) return "";
  std::vector<std::string> parts;
  parts.reserve(beside.size());
  for (const MemoryReserve& part : beside) {
    parts.push_back(concat(format_bytes(part.bytes), " ", part.what));
  }
  return concat("In addition, as nvidia-smi shows: about ", format_bytes(sum_of(beside)), ": ",
                join(parts, ", "), "\n");
}

Bytes sum_of(const std::vector<MemoryReserve>& reserves) {
  Bytes sum = 0;
  for (const MemoryReserve& reserve : reserves) sum += reserve.bytes;
  return sum;
}

}  // namespace dstune
