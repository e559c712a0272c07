#include "core/train/zero/gather/quantized_gather.hpp"

#include <numeric>
#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/quantize.hpp"
#include "core/train/zero/layout/quantization_groups.hpp"

namespace dstune {

namespace {

constexpr int kBits = 8;

Buffer temporary(Device& device, std::int64_t numel, DType dtype) {
  return make_buffer(device, MemoryCategory::temporaries, numel, dtype);
}

std::int64_t groups_of(std::int64_t numel) {
  const auto groups = weight_groups(numel);
  if (!groups) {
    throw QuantizationRefused(
        concat("zero_quantized_weights: a message of ", numel, " elements is not a multiple of 8"));
  }
  return *groups;
}

}  // namespace

QuantizedMessage QuantizedGather::launch(const std::vector<Tensor>& shards) const {
  Buffer together;
  Buffer half;
  const Tensor in = joined(shards, together, half);
  const std::int64_t groups = groups_of(in.numel);
  Buffer values = temporary(device_, in.numel, DType::int8);
  Buffer steps = temporary(device_, groups, DType::fp32);
  device_.run(MemoryPass::quantize, Quantize{.in = in,
                                             .how = {kBits},
                                             .out = values.tensor(DType::int8),
                                             .steps = steps.tensor(DType::fp32)});
  values.used_on(Stream::communication);
  steps.used_on(Stream::communication);
  QuantizedMessage message{all_of(values), all_of(steps), {}};
  collectives_.all_gather(values.tensor(DType::int8), message.values.tensor(DType::int8),
                          Purpose::parameters);
  message.received = collectives_.all_gather(steps.tensor(DType::fp32),
                                             message.steps.tensor(DType::fp32), Purpose::scales);
  return message;
}

Buffer QuantizedGather::dequantized(const QuantizedMessage& message,
                                    MemoryCategory category) const {
  const Tensor values = message.values.tensor(DType::int8);
  Buffer result = make_buffer(device_, category, values.numel, dtype_);
  const Buffer half =
      dtype_ == DType::fp16 ? Buffer{} : temporary(device_, values.numel, DType::fp16);
  const Tensor out = (half ? half : result).tensor(DType::fp16);
  device_.run(
      MemoryPass::dequantize,
      Dequantize{
          .in = values, .bits = kBits, .steps = message.steps.tensor(DType::fp32), .out = out});
  if (half) device_.run(MemoryPass::dequantize, Cast{out, result.tensor(dtype_)});
  return result;
}

Tensor QuantizedGather::joined(const std::vector<Tensor>& shards, Buffer& together,
                               Buffer& half) const {
  Tensor in = shards.front();
  if (shards.size() > 1) {
    const std::int64_t numel =
        std::accumulate(shards.begin(), shards.end(), std::int64_t{0},
                        [](std::int64_t sum, const Tensor& shard) { return sum + shard.numel; });
    together = temporary(device_, numel, dtype_);
    in = together.tensor(dtype_);
    std::int64_t offset = 0;
    for (const Tensor& shard : shards) {
      device_.run(MemoryPass::gather_pack, Copy{shard, in.slice(offset, shard.numel)});
      offset += shard.numel;
    }
  }
  if (dtype_ == DType::fp16) return in;
  half = temporary(device_, in.numel, DType::fp16);
  device_.run(MemoryPass::quantize, Cast{in, half.tensor(DType::fp16)});
  return half.tensor(DType::fp16);
}

Buffer QuantizedGather::all_of(const Buffer& own) const {
  return {device_, MemoryCategory::temporaries,
          own.size() * static_cast<Bytes>(collectives_.size())};
}

}  // namespace dstune
