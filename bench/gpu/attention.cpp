#include "core/device/operations/attention.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "bench/bench_operations.hpp"
#include "bench/gpu/libraries.hpp"
#include "bench/gpu/rows.hpp"
#include "core/base/text.hpp"

namespace dstune::bench {

namespace {

struct Operands {
  Attention forward;
  AttentionBackward backward;
};

Operands make_operands(Setting& setting, Arena& arena, std::int64_t heads, std::int64_t head_size) {
  const AttentionShape shape{.batch = setting.sequences,
                             .sequence = setting.sequence,
                             .heads = heads,
                             .kv_heads = heads,
                             .head_size = head_size};
  const std::int64_t rows = shape.batch * shape.sequence;
  const std::int64_t h = heads * head_size;
  const auto matrix = [&](std::int64_t cols) {
    const Tensor tensor = arena.tensor(rows * cols, DType::bf16);
    setting.device.run(FillNormal{.out = tensor, .stddev = 1, .seed = 7, .first_index = 0});
    return as_matrix(tensor, rows, cols);
  };
  const Tensor lse = arena.tensor(shape.batch * heads * shape.sequence);
  const Tensor workspace =
      arena.tensor(std::max({std::int64_t{1}, attention_workspace_of_all(shape),
                             setting.device.attention_workspace(shape)}));
  const Matrix qkv = matrix(3 * h);
  const Matrix d_qkv = matrix(3 * h);
  const Matrix out = matrix(h);
  const auto part = [&](const Matrix& whole, std::int64_t index) {
    return heads_in(whole, index * h, heads, head_size);
  };
  return {{.shape = shape,
           .q = part(qkv, 0),
           .k = part(qkv, 1),
           .v = part(qkv, 2),
           .lse = lse,
           .workspace = workspace,
           .out = out},
          {.shape = shape,
           .d_out = matrix(h),
           .q = part(qkv, 0),
           .k = part(qkv, 1),
           .v = part(qkv, 2),
           .out = out,
           .lse = lse,
           .workspace = workspace,
           .d_q = part(d_qkv, 0),
           .d_k = part(d_qkv, 1),
           .d_v = part(d_qkv, 2)}};
}

/// Ours, the library's, our own kernel's; what does not exist is left out.
void add(Setting& setting, const std::string& name, double flops, const Queue& ours,
         const Queue& library, const Queue& own) {
  std::vector<Queue> queues = {ours};
  if (library) queues.push_back(library);
  if (own) queues.push_back(own);
  const std::vector<Seconds> times = setting.stopwatch.times(queues);
  const auto speed = [&](std::size_t which) { return flops / times[which] * 1e-12; };
  const double reference = library ? speed(1) : 0;
  setting.verdicts.add(name, speed(0), reference);
  if (own)
    setting.verdicts.remark(concat(name, ", our own kernel"), speed(times.size() - 1), reference);
}

void add_model(Setting& setting, const char* model, std::int64_t heads, std::int64_t head_size) {
  Arena arena(setting.device);
  const Operands op =
      make_operands(setting, arena, std::max<std::int64_t>(heads / setting.divisor, 1), head_size);
  setting.device.run(op.forward);  // whose sums backward needs
  const AttentionKernels cudnn = attention_by_cudnn(setting.device, op.forward, op.backward);
  const AttentionKernels own = attention_by_own(setting.device, op.forward, op.backward);
  add(
      setting, concat(model, " attention"), work_of(op.forward).flops,
      [&] { setting.device.run(op.forward); }, cudnn.forward, own.forward);
  setting.device.run(op.forward);
  add(
      setting, concat(model, " attention backward"), work_of(op.backward).flops,
      [&] { setting.device.run(op.backward); }, cudnn.backward, own.backward);
}

}  // namespace

void add_attention(Setting& setting) {
  setting.verdicts.begin(
      concat("Causal attention at ", setting.sequences, " x ", setting.sequence, " tokens in bf16"),
      "TFLOP/s of the products below the diagonal", cudnn_name(), 0.95);
  add_model(setting, "gpt2 (12 heads of 64)", 12, 64);
  add_model(setting, "gpt2-xl (25 heads of 64)", 25, 64);
  add_model(setting, "16 heads of 128", 16, 128);
}

}  // namespace dstune::bench
