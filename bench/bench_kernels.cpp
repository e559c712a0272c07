// How near the CPU kernels come to the machine: gradient passes and Adam against a STREAM-like
// copy, and where the time of one GPT-2 micro-step would go, against its matrix products alone.
#include <cstdio>
#include <string>
#include <vector>

#include "bench/bench_operations.hpp"
#include "bench/bench_support.hpp"
#include "core/device/operations/activations.hpp"
#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/losses.hpp"
#include "core/device/operations/norms.hpp"
#include "core/device/operations/optimizers.hpp"
#include "core/device/operations/quantize.hpp"
#include "core/device/operations/softmax.hpp"
#include "core/model/model_spec.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/products/blas.hpp"

namespace dstune::bench {

namespace {

/// One memory pass: what it does, and the bytes it reads and writes.
struct TimedPass {
  Case timed;
  double bytes;
};

void stream_copy(const float* in, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = in[i];
}

std::vector<TimedPass> memory_passes(Device& device, Arena& arena) {
  constexpr std::int64_t kCount = std::int64_t{32} << 20U;  // 128 MiB of fp32: no cache holds it
  constexpr auto kElements = static_cast<double>(kCount);
  const Tensor a = arena.tensor(kCount);
  const Tensor b = arena.tensor(kCount);
  const Tensor m = arena.tensor(kCount);
  const Tensor v = arena.tensor(kCount);
  device.run(FillConstant{v, 0.01});  // second moments are not negative
  const Tensor h = arena.tensor(kCount, DType::bf16);
  const Tensor h2 = arena.tensor(kCount, DType::bf16);
  const Tensor half = arena.tensor(kCount, DType::fp16);
  const Tensor packed = arena.bytes(kCount);
  const Tensor steps = arena.tensor(kCount / 8192);
  const Tensor number = arena.tensor(1);
  const Tensor flag = arena.bytes(1);
  const auto quantize = [=](int bits) {
    const Tensor out = packed.slice(0, kCount * bits / 8);
    return Quantize{.in = half, .how = {bits}, .out = out, .steps = steps};
  };
  const auto dequantize = [=](int bits) {
    const Tensor in = packed.slice(0, kCount * bits / 8);
    return Dequantize{.in = in, .bits = bits, .steps = steps, .out = half};
  };
  const auto copy = [=] {
    stream_copy(static_cast<const float*>(a.data), static_cast<float*>(b.data), kCount);
  };
  return {
      {{"STREAM-like copy", copy}, 8 * kElements},
      {timed("copy fp32", device, Copy{a, b}), 8 * kElements},
      {timed("fill_zero fp32", device, FillZero{b}), 4 * kElements},
      {timed("scale fp32", device, Scale{a, 1.0000001}), 8 * kElements},
      {timed("scale bf16", device, Scale{h, 1.0000001}), 4 * kElements},
      {timed("scale fp16", device, Scale{half, 1.0000001}), 4 * kElements},
      {timed("add fp32", device, Add{b, a}), 12 * kElements},
      {timed("add bf16", device, Add{h2, h}), 6 * kElements},
      {timed("cast fp32 -> bf16", device, Cast{a, h}), 6 * kElements},
      {timed("cast bf16 -> fp32", device, Cast{h, b}), 6 * kElements},
      {timed("cast fp32 -> fp16", device, Cast{a, half}), 6 * kElements},
      {timed("cast fp16 -> fp32", device, Cast{half, b}), 6 * kElements},
      {timed("add_squares fp32", device, AddSquares{a, number}), 4 * kElements},
      {timed("add_squares bf16", device, AddSquares{h, number}), 2 * kElements},
      {timed("find_inf_or_nan fp32", device, FindInfOrNan{a, flag}), 4 * kElements},
      {timed("quantize fp16 -> int8", device, quantize(8)), 3 * kElements},
      {timed("quantize fp16 -> int4", device, quantize(4)), 2.5 * kElements},
      {timed("dequantize int8 -> fp16", device, dequantize(8)), 3 * kElements},
      {timed("dequantize int4 -> fp16", device, dequantize(4)), 2.5 * kElements},
      {timed("adam", device, Adam{.gradient = a, .parameter = b, .exp_avg = m, .exp_avg_sq = v}),
       28 * kElements},
  };
}

void report_memory_passes(int rounds) {
  cpu::CpuDevice device(Bytes{4} << 30U);
  Arena arena(device);
  const std::vector<TimedPass> passes = memory_passes(device, arena);
  std::vector<Case> cases;
  for (const TimedPass& pass : passes) cases.push_back(pass.timed);
  const std::vector<Seconds> times = median_times(cases, rounds);
  const double copy_rate = passes[0].bytes / times[0];
  std::printf("\n| pass | GB/s | over copy |\n|---|---:|---:|\n");
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const double rate = passes[i].bytes / times[i];
    std::printf("| %s | %.2f | %.2f |\n", passes[i].timed.name.c_str(), rate / 1e9,
                rate / copy_rate);
  }
}

/// One operation of a micro-step, and how often the step does it.
struct Part {
  Case timed;
  double calls;
  double flop;  // of one call, matrix products only
};

class Parts {
 public:
  explicit Parts(Device& device) : device_(device) {}

  template <class Operation>
  void add(const std::string& name, double calls, const Operation& operation, double flop = 0) {
    all_.push_back({timed(name, device_, operation), calls, flop});
  }
  std::int64_t attention_workspace(const AttentionShape& shape) const {
    return device_.attention_workspace(shape);
  }
  const std::vector<Part>& all() const { return all_; }

 private:
  Device& device_;
  std::vector<Part> all_;
};

/// The three products of y(M, n) = x(M, k) w(k, n), w as it is stored: of Conv1D, with a bias, or
/// of the tied head.
void add_linear(Parts& parts, Arena& arena, const std::string& name, std::int64_t rows,
                std::int64_t k, std::int64_t n, bool transposed, double calls) {
  const Matrix x = arena.matrix(rows, k);
  const Matrix y = arena.matrix(rows, n);
  const Matrix w = transposed ? arena.matrix(n, k) : arena.matrix(k, n);
  const double flop =
      2.0 * static_cast<double>(rows) * static_cast<double>(k) * static_cast<double>(n);
  const auto as_stored = transposed ? Transpose::yes : Transpose::no;
  const auto other = transposed ? Transpose::no : Transpose::yes;
  Gemm forward{.transpose_b = as_stored, .a = x, .b = w, .c = y};
  if (!transposed) forward.bias = arena.tensor(n);
  parts.add(name + " forward", calls, forward, flop);
  parts.add(name + " d_x", calls, Gemm{.transpose_b = other, .a = y, .b = w, .c = x}, flop);
  parts.add(
      name + " d_w", calls,
      Gemm{.transpose_a = Transpose::yes, .a = transposed ? y : x, .b = transposed ? x : y, .c = w},
      flop);
}

void add_products(Parts& parts, Arena& arena, const ModelSpec& model, std::int64_t rows) {
  const std::int64_t h = model.hidden_size;
  const std::int64_t f = model.inner_size;
  const auto layers = static_cast<double>(model.num_layers);
  add_linear(parts, arena, "c_attn", rows, h, 3 * h, false, layers);
  add_linear(parts, arena, "attn.c_proj", rows, h, h, false, layers);
  add_linear(parts, arena, "c_fc", rows, h, f, false, layers);
  add_linear(parts, arena, "mlp.c_proj", rows, f, h, false, layers);
  add_linear(parts, arena, "head", rows, h, model.vocab_size, true, 1);
}

void add_layer_operations(Parts& parts, Arena& arena, const ModelSpec& model, std::int64_t batch,
                          std::int64_t sequence) {
  const std::int64_t rows = batch * sequence;
  const std::int64_t h = model.hidden_size;
  const std::int64_t f = model.inner_size;
  const auto layers = static_cast<double>(model.num_layers);
  const Matrix x = arena.matrix(rows, h);
  const Matrix y = arena.matrix(rows, h);
  const Tensor gamma = arena.tensor(h);
  const Tensor beta = arena.tensor(h);
  const LayerNormSaved moments{arena.tensor(rows), arena.tensor(rows)};
  parts.add(
      "layer_norm", 2 * layers + 1,
      LayerNorm{.x = x, .gamma = gamma, .beta = beta, .epsilon = 1e-5, .saved = moments, .out = y});
  const Tensor d_gamma = arena.tensor(h);
  const Tensor d_beta = arena.tensor(h);
  parts.add("layer_norm backward", 2 * layers + 1,
            LayerNormBackward{.d_out = y,
                              .x = x,
                              .gamma = gamma,
                              .saved = moments,
                              .d_x = y,
                              .d_gamma = d_gamma,
                              .d_beta = d_beta});
  const Tensor wide = arena.tensor(rows * f);
  const Tensor d_wide = arena.tensor(rows * f);
  const GeluSaved saved{arena.tensor(rows * f), arena.tensor(rows * f), arena.tensor(rows * f)};
  parts.add("gelu_new", layers, GeluNew{.x = wide, .saved = saved, .out = d_wide});
  parts.add("gelu_new backward", layers,
            GeluNewBackward{.d_out = d_wide, .x = wide, .saved = saved, .d_x = d_wide});
  const Matrix narrow = arena.matrix(rows, h);
  parts.add("bias_gradient (h)", 2 * layers, BiasGradient{narrow, d_beta});
  const Tensor bias = arena.tensor(f);
  const Matrix wide_matrix = as_matrix(wide, rows, f);
  parts.add("bias_gradient (3h, f)", 2 * layers, BiasGradient{wide_matrix, bias});
  const Tensor r1 = arena.tensor(rows * h);
  const Tensor r2 = arena.tensor(rows * h);
  parts.add("residual add", 4 * layers, Add{r1, r2});
}

void add_attention(Parts& parts, Arena& arena, const ModelSpec& model, std::int64_t batch,
                   std::int64_t sequence) {
  const AttentionShape shape{.batch = batch,
                             .sequence = sequence,
                             .heads = model.num_heads,
                             .kv_heads = model.num_heads,
                             .head_size = model.head_size()};
  const std::int64_t rows = batch * sequence;
  const Matrix qkv = arena.matrix(rows, 3 * model.hidden_size);
  const Matrix d_qkv = arena.matrix(rows, 3 * model.hidden_size);
  const auto part = [&](const Matrix& matrix, std::int64_t index) {
    return heads_in(matrix, index * model.hidden_size, shape.heads, shape.head_size);
  };
  const Matrix out = arena.matrix(rows, model.hidden_size);
  const Matrix d_out = arena.matrix(rows, model.hidden_size);
  const Tensor lse = arena.tensor(batch * model.num_heads * sequence);
  const Tensor workspace = arena.tensor(parts.attention_workspace(shape));
  const auto layers = static_cast<double>(model.num_layers);
  parts.add("attention", layers,
            Attention{.shape = shape,
                      .q = part(qkv, 0),
                      .k = part(qkv, 1),
                      .v = part(qkv, 2),
                      .lse = lse,
                      .workspace = workspace,
                      .out = out});
  parts.add("attention backward", layers,
            AttentionBackward{.shape = shape,
                              .d_out = d_out,
                              .q = part(qkv, 0),
                              .k = part(qkv, 1),
                              .v = part(qkv, 2),
                              .out = out,
                              .lse = lse,
                              .workspace = workspace,
                              .d_q = part(d_qkv, 0),
                              .d_k = part(d_qkv, 1),
                              .d_v = part(d_qkv, 2)});
}

void add_ends(Parts& parts, Arena& arena, const ModelSpec& model, std::int64_t batch,
              std::int64_t sequence) {
  const std::int64_t rows = batch * sequence;
  const std::int64_t h = model.hidden_size;
  const Matrix wte = arena.matrix(model.vocab_size, h);
  const Matrix wpe = arena.matrix(model.max_positions, h);
  const Matrix x = arena.matrix(rows, h);
  const Matrix y = arena.matrix(rows, h);
  const Tensor tokens = arena.tokens(rows, model.vocab_size);
  parts.add("embedding of tokens", 1, Embedding{.tokens = tokens, .table = wte, .out = x});
  const Tensor positions = arena.tokens(sequence, model.max_positions);
  const Matrix p = arena.matrix(sequence, h);
  parts.add("embedding of positions", 1, Embedding{.tokens = positions, .table = wpe, .out = p});
  parts.add("sum of embeddings", 1, AddBroadcast{.a = x, .b = p, .out = y});
  parts.add("sum of embeddings backward", 1, AddBroadcastBackward{y, p});
  parts.add("embedding of positions backward", 1, EmbeddingBackward{p, positions, wpe});
  parts.add("embedding of tokens backward", 1, EmbeddingBackward{y, tokens, wte});
  const Matrix logits = arena.matrix(rows, model.vocab_size);
  const Matrix log_probs = arena.matrix(rows, model.vocab_size);
  parts.add("log_softmax", 1, LogSoftmax{logits, log_probs});
  const Tensor loss = arena.tensor(1);
  parts.add("nll_loss", 1, NllLoss{.log_probs = log_probs, .labels = tokens, .sum = loss});
  parts.add("nll_loss backward", 1,
            NllLossBackward{.labels = tokens, .loss_scale = 1, .out = logits});
  parts.add("log_softmax backward", 1,
            LogSoftmaxBackward{.d_log_probs = logits, .log_probs = log_probs, .d_logits = logits});
}

void report_step(std::int64_t batch, std::int64_t sequence, int rounds) {
  cpu::CpuDevice device(Bytes{8} << 30U);
  Arena arena(device);
  const ModelSpec model;
  Parts step(device);
  add_products(step, arena, model, batch * sequence);
  const std::size_t products = step.all().size();
  add_layer_operations(step, arena, model, batch, sequence);
  add_attention(step, arena, model, batch, sequence);
  add_ends(step, arena, model, batch, sequence);
  const std::vector<Part>& parts = step.all();
  std::vector<Case> cases;
  for (const Part& part : parts) cases.push_back(part.timed);
  const std::vector<Seconds> times = median_times(cases, rounds);

  double total = 0;
  double in_products = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    total += parts[i].calls * times[i];
    if (i < products) in_products += parts[i].calls * times[i];
  }
  std::printf("\n| operation | calls | ms per call | GFLOP/s | share of step |\n");
  std::printf("|---|---:|---:|---:|---:|\n");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::printf("| %s | %.0f | %.3f | %.1f | %.1f %% |\n", parts[i].timed.name.c_str(),
                parts[i].calls, times[i] * 1e3, parts[i].flop / times[i] / 1e9,
                100 * parts[i].calls * times[i] / total);
  }
  std::printf("\nmicro-step %.0f ms, of it matrix products %.0f ms: %.2f\n", total * 1e3,
              in_products * 1e3, in_products / total);
}

}  // namespace

}  // namespace dstune::bench

int main() {
  dstune::cpu::set_blas_threads(1);
  dstune::bench::report_memory_passes(7);
  dstune::bench::report_step(4, 128, 5);
  return 0;
}
