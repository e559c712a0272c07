#include "core/train/zero/reduction/quantized_reduce.hpp"

#include <cassert>
#include <utility>

#include "core/device/dry/repeated_work.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/quantize.hpp"

namespace dstune {

namespace {

constexpr int kBits = 4;

}  // namespace

struct QuantizedReduce::Packed {
  Buffer values_buffer;
  Buffer steps_buffer;

  Tensor values() const { return values_buffer.tensor(DType::int8); }
  Tensor steps() const { return steps_buffer.tensor(DType::fp32); }
};

Buffer QuantizedReduce::average(Tensor gradient, std::int64_t groups) const {
  const int devices = intra_.size();
  assert(groups % ranks() == 0 && gradient.numel % (2 * groups) == 0);
  const Packed own = make(gradient.numel, groups);
  device_.run(MemoryPass::quantize, Quantize{.in = gradient,
                                             .how = {kBits, inter_.size(), devices},
                                             .out = own.values(),
                                             .steps = own.steps()});
  const Packed of_node = exchange(own, intra_);
  const Packed sum = make(gradient.numel / devices, groups / devices);
  device_.run(MemoryPass::dequantize, SumQuantized{.in = of_node.values(),
                                                   .bits = kBits,
                                                   .steps = of_node.steps(),
                                                   .parts = devices,
                                                   .out = sum.values(),
                                                   .out_steps = sum.steps()});
  const Packed of_nodes = exchange(sum, inter_);
  return sum_of_nodes(of_nodes, gradient.numel / devices, gradient.dtype);
}

// The contribution of every node is dequantised before all are added in the gradient's type.
Buffer QuantizedReduce::sum_of_nodes(const Packed& received, std::int64_t elements,
                                     DType dtype) const {
  const Buffer all = make_buffer(device_, MemoryCategory::temporaries, elements, dtype);
  device_.run(MemoryPass::dequantize, Dequantize{.in = received.values(),
                                                 .bits = kBits,
                                                 .steps = received.steps(),
                                                 .out = all.tensor(dtype)});
  const std::int64_t part = elements / inter_.size();
  Buffer result = make_buffer(device_, MemoryCategory::temporaries, part, dtype);
  const Tensor sum = result.tensor(dtype);
  device_.run(MemoryPass::dequantize, Copy{all.tensor(dtype).slice(0, part), sum});
  repeat(device_, inter_.size() - 1, [&](std::int64_t before) {
    device_.run(MemoryPass::dequantize,
                Add{sum, all.tensor(dtype).slice((before + 1) * part, part)});
  });
  device_.run(MemoryPass::average, Scale{sum, 1.0 / ranks()});
  return result;
}

QuantizedReduce::Packed QuantizedReduce::make(std::int64_t elements, std::int64_t groups) const {
  const auto temporary = [&](std::int64_t numel, DType dtype) {
    return make_buffer(device_, MemoryCategory::temporaries, numel, dtype);
  };
  Buffer values = temporary(packed_size(elements, kBits), DType::int8);
  return {std::move(values), temporary(groups, DType::fp32)};
}

QuantizedReduce::Packed QuantizedReduce::exchange(const Packed& own, Collectives& group) const {
  Packed received = make(own.values().numel * 8 / kBits, own.steps().numel);
  group.all_to_all(own.values(), received.values(), Purpose::gradients);
  device_.await(group.all_to_all(own.steps(), received.steps(), Purpose::scales));
  return received;
}

}  // namespace dstune
