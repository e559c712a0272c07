// How near the CPU kernels come to the machine: gradient passes and Adam against a STREAM-like
// copy, and where the time of one GPT-2 micro-step would go, against its matrix products alone.
#include <cstdio>
#include <string>
#include <vector>

#include "bench/bench_support.hpp"
#include "core/model/model_spec.hpp"
#include "kernels/cpu/blas.hpp"
#include "kernels/cpu/cpu_device.hpp"

namespace {

using dstune::as_matrix;
using dstune::AttentionShape;
using dstune::Buffer;
using dstune::Device;
using dstune::DType;
using dstune::make_buffer;
using dstune::Matrix;
using dstune::MemoryCategory;
using dstune::Seconds;
using dstune::Tensor;
using dstune::Transpose;
using dstune::bench::Case;

/// One memory pass: what it does, and the bytes it reads and writes.
struct Pass {
  Case timed;
  double bytes;
};

/// Buffers live as long as the cases that use them.
class Arena {
 public:
  explicit Arena(Device& device) : device_(device) {}

  /// Filled with small normal numbers, so that nothing overflows or is denormal.
  Tensor tensor(std::int64_t numel, DType dtype = DType::fp32) {
    buffers_.push_back(make_buffer(device_, MemoryCategory::temporaries, numel, dtype));
    const Tensor result = buffers_.back().tensor(dtype);
    device_.fill_normal(result, 0.02, buffers_.size(), 0);
    return result;
  }
  Tensor bytes(std::int64_t numel) {
    buffers_.push_back(make_buffer(device_, MemoryCategory::temporaries, numel, DType::int8));
    return buffers_.back().tensor(DType::int8);
  }
  Matrix matrix(std::int64_t rows, std::int64_t cols) {
    return as_matrix(tensor(rows * cols), rows, cols);
  }
  std::int64_t* tokens(std::int64_t count, std::int64_t vocab) {
    buffers_.emplace_back(device_, MemoryCategory::temporaries,
                          static_cast<dstune::Bytes>(count) * sizeof(std::int64_t));
    auto* const result = static_cast<std::int64_t*>(buffers_.back().data());
    device_.fill_tokens(result, count, vocab, 1);
    return result;
  }

 private:
  Device& device_;
  std::vector<Buffer> buffers_;
};

void stream_copy(const float* in, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = in[i];
}

std::vector<Pass> memory_passes(Device& device, Arena& arena) {
  constexpr std::int64_t kCount = std::int64_t{32} << 20U;  // 128 MiB of fp32: no cache holds it
  constexpr auto kElements = static_cast<double>(kCount);
  const Tensor a = arena.tensor(kCount);
  const Tensor b = arena.tensor(kCount);
  const Tensor m = arena.tensor(kCount);
  const Tensor v = arena.tensor(kCount);
  device.fill_constant(v, 0.01);  // second moments are not negative
  const Tensor h = arena.tensor(kCount, DType::bf16);
  const Tensor h2 = arena.tensor(kCount, DType::bf16);
  const Tensor half = arena.tensor(kCount, DType::fp16);
  const Tensor packed = arena.bytes(kCount);
  const Tensor steps = arena.tensor(kCount / 8192);
  const Tensor number = arena.tensor(1);
  const Tensor flag = arena.bytes(1);
  const auto quantize = [=, &device](int bits) {
    device.quantize(half, {bits}, packed.slice(0, kCount * bits / 8), steps);
  };
  const auto dequantize = [=, &device](int bits) {
    device.dequantize(packed.slice(0, kCount * bits / 8), bits, steps, half);
  };
  const auto copy = [=] {
    stream_copy(static_cast<const float*>(a.data), static_cast<float*>(b.data), kCount);
  };
  return {
      {{"STREAM-like copy", copy}, 8 * kElements},
      {{"copy fp32", [=, &device] { device.copy(a, b); }}, 8 * kElements},
      {{"fill_zero fp32", [=, &device] { device.fill_zero(b); }}, 4 * kElements},
      {{"scale fp32", [=, &device] { device.scale(a, 1.0000001); }}, 8 * kElements},
      {{"scale bf16", [=, &device] { device.scale(h, 1.0000001); }}, 4 * kElements},
      {{"scale fp16", [=, &device] { device.scale(half, 1.0000001); }}, 4 * kElements},
      {{"add fp32", [=, &device] { device.add(b, a); }}, 12 * kElements},
      {{"add bf16", [=, &device] { device.add(h2, h); }}, 6 * kElements},
      {{"cast fp32 -> bf16", [=, &device] { device.cast(a, h); }}, 6 * kElements},
      {{"cast bf16 -> fp32", [=, &device] { device.cast(h, b); }}, 6 * kElements},
      {{"cast fp32 -> fp16", [=, &device] { device.cast(a, half); }}, 6 * kElements},
      {{"cast fp16 -> fp32", [=, &device] { device.cast(half, b); }}, 6 * kElements},
      {{"add_squares fp32", [=, &device] { device.add_squares(a, number); }}, 4 * kElements},
      {{"add_squares bf16", [=, &device] { device.add_squares(h, number); }}, 2 * kElements},
      {{"find_inf_or_nan fp32", [=, &device] { device.find_inf_or_nan(a, flag); }}, 4 * kElements},
      {{"quantize fp16 -> int8", [=] { quantize(8); }}, 3 * kElements},
      {{"quantize fp16 -> int4", [=] { quantize(4); }}, 2.5 * kElements},
      {{"dequantize int8 -> fp16", [=] { dequantize(8); }}, 3 * kElements},
      {{"dequantize int4 -> fp16", [=] { dequantize(4); }}, 2.5 * kElements},
      {{"adam", [=, &device] { device.adam({}, a, b, m, v); }}, 28 * kElements},
  };
}

void report_memory_passes(int rounds) {
  dstune::cpu::CpuDevice device(dstune::Bytes{4} << 30U);
  Arena arena(device);
  const std::vector<Pass> passes = memory_passes(device, arena);
  std::vector<Case> cases;
  for (const Pass& pass : passes) cases.push_back(pass.timed);
  const std::vector<Seconds> times = dstune::bench::median_times(cases, rounds);
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

/// The three products of y(M, n) = x(M, k) w(k, n), w as it is stored (Conv1D or the tied head).
void add_linear(std::vector<Part>& parts, Device& device, Arena& arena, const std::string& name,
                std::int64_t rows, std::int64_t k, std::int64_t n, bool transposed, double calls) {
  const Matrix x = arena.matrix(rows, k);
  const Matrix y = arena.matrix(rows, n);
  const Matrix w = transposed ? arena.matrix(n, k) : arena.matrix(k, n);
  const double flop =
      2.0 * static_cast<double>(rows) * static_cast<double>(k) * static_cast<double>(n);
  const auto as_stored = transposed ? Transpose::yes : Transpose::no;
  const auto other = transposed ? Transpose::no : Transpose::yes;
  parts.push_back(
      {{name + " forward", [=, &device] { device.gemm(Transpose::no, as_stored, x, w, 0, y); }},
       calls,
       flop});
  parts.push_back({{name + " d_x", [=, &device] { device.gemm(Transpose::no, other, y, w, 0, x); }},
                   calls,
                   flop});
  const auto weight_gradient = [=, &device] {
    if (transposed) {
      device.gemm(Transpose::yes, Transpose::no, y, x, 0, w);
    } else {
      device.gemm(Transpose::yes, Transpose::no, x, y, 0, w);
    }
  };
  parts.push_back({{name + " d_w", weight_gradient}, calls, flop});
}

void add_products(std::vector<Part>& parts, Device& device, Arena& arena,
                  const dstune::ModelSpec& model, std::int64_t rows) {
  const std::int64_t h = model.hidden_size;
  const std::int64_t f = model.inner_size;
  const auto layers = static_cast<double>(model.num_layers);
  add_linear(parts, device, arena, "c_attn", rows, h, 3 * h, false, layers);
  add_linear(parts, device, arena, "attn.c_proj", rows, h, h, false, layers);
  add_linear(parts, device, arena, "c_fc", rows, h, f, false, layers);
  add_linear(parts, device, arena, "mlp.c_proj", rows, f, h, false, layers);
  add_linear(parts, device, arena, "head", rows, h, model.vocab_size, true, 1);
}

void add_layer_operations(std::vector<Part>& parts, Device& device, Arena& arena,
                          const dstune::ModelSpec& model, std::int64_t batch,
                          std::int64_t sequence) {
  const std::int64_t rows = batch * sequence;
  const std::int64_t h = model.hidden_size;
  const std::int64_t f = model.inner_size;
  const auto layers = static_cast<double>(model.num_layers);
  const Matrix x = arena.matrix(rows, h);
  const Matrix y = arena.matrix(rows, h);
  const Tensor gamma = arena.tensor(h);
  const Tensor beta = arena.tensor(h);
  const dstune::LayerNormSaved moments{arena.tensor(rows), arena.tensor(rows)};
  parts.push_back(
      {{"layer_norm", [=, &device] { device.layer_norm(x, gamma, beta, 1e-5, moments, y); }},
       2 * layers + 1,
       0});
  const Tensor d_gamma = arena.tensor(h);
  const Tensor d_beta = arena.tensor(h);
  parts.push_back(
      {{"layer_norm backward",
        [=, &device] { device.layer_norm_backward(y, x, gamma, moments, y, d_gamma, d_beta); }},
       2 * layers + 1,
       0});
  const Tensor wide = arena.tensor(rows * f);
  const Tensor d_wide = arena.tensor(rows * f);
  const dstune::GeluSaved saved{arena.tensor(rows * f), arena.tensor(rows * f),
                                arena.tensor(rows * f)};
  parts.push_back(
      {{"gelu_new", [=, &device] { device.gelu_new(wide, saved, d_wide); }}, layers, 0});
  parts.push_back({{"gelu_new backward",
                    [=, &device] { device.gelu_new_backward(d_wide, wide, saved, d_wide); }},
                   layers,
                   0});
  const Matrix narrow = arena.matrix(rows, h);
  parts.push_back(
      {{"add_bias (h)", [=, &device] { device.add_bias(narrow, gamma); }}, 2 * layers, 0});
  parts.push_back({{"bias_gradient (h)", [=, &device] { device.bias_gradient(narrow, d_beta); }},
                   2 * layers,
                   0});
  const Tensor bias = arena.tensor(f);
  const Matrix wide_matrix = as_matrix(wide, rows, f);
  parts.push_back(
      {{"add_bias (3h, f)", [=, &device] { device.add_bias(wide_matrix, bias); }}, 2 * layers, 0});
  parts.push_back(
      {{"bias_gradient (3h, f)", [=, &device] { device.bias_gradient(wide_matrix, bias); }},
       2 * layers,
       0});
  const Tensor r1 = arena.tensor(rows * h);
  const Tensor r2 = arena.tensor(rows * h);
  parts.push_back({{"residual add", [=, &device] { device.add(r1, r2); }}, 4 * layers, 0});
}

void add_attention(std::vector<Part>& parts, Device& device, Arena& arena,
                   const dstune::ModelSpec& model, std::int64_t batch, std::int64_t sequence) {
  const AttentionShape shape{batch, sequence, model.num_heads, model.head_size(), 0, 0};
  const std::int64_t rows = batch * sequence;
  const Matrix qkv = arena.matrix(rows, 3 * model.hidden_size);
  const Matrix d_qkv = arena.matrix(rows, 3 * model.hidden_size);
  const Matrix out = arena.matrix(rows, model.hidden_size);
  const Matrix d_out = arena.matrix(rows, model.hidden_size);
  const Tensor lse = arena.tensor(batch * model.num_heads * sequence);
  const Tensor workspace = arena.tensor(device.attention_workspace(shape));
  const auto layers = static_cast<double>(model.num_layers);
  parts.push_back(
      {{"attention", [=, &device] { device.attention(shape, qkv, lse, workspace, out); }},
       layers,
       0});
  parts.push_back(
      {{"attention backward",
        [=, &device] { device.attention_backward(shape, d_out, qkv, out, lse, workspace, d_qkv); }},
       layers,
       0});
}

void add_ends(std::vector<Part>& parts, Device& device, Arena& arena,
              const dstune::ModelSpec& model, std::int64_t batch, std::int64_t sequence) {
  const std::int64_t rows = batch * sequence;
  const std::int64_t h = model.hidden_size;
  const Matrix wte = arena.matrix(model.vocab_size, h);
  const Matrix wpe = arena.matrix(model.max_positions, h);
  const Matrix x = arena.matrix(rows, h);
  const std::int64_t* tokens = arena.tokens(rows, model.vocab_size);
  parts.push_back(
      {{"embedding", [=, &device] { device.embedding(tokens, sequence, wte, wpe, x); }}, 1, 0});
  parts.push_back({{"embedding backward",
                    [=, &device] { device.embedding_backward(x, tokens, sequence, wte, wpe); }},
                   1,
                   0});
  const Matrix logits = arena.matrix(rows, model.vocab_size);
  const Matrix log_probs = arena.matrix(rows, model.vocab_size);
  parts.push_back({{"log_softmax", [=, &device] { device.log_softmax(logits, log_probs); }}, 1, 0});
  const Tensor loss = arena.tensor(1);
  parts.push_back({{"nll_loss", [=, &device] { device.nll_loss(log_probs, tokens, loss); }}, 1, 0});
  parts.push_back(
      {{"nll_loss backward", [=, &device] { device.nll_loss_backward(tokens, 1, logits); }}, 1, 0});
  parts.push_back({{"log_softmax backward",
                    [=, &device] { device.log_softmax_backward(logits, log_probs, logits); }},
                   1,
                   0});
}

void report_step(std::int64_t batch, std::int64_t sequence, int rounds) {
  dstune::cpu::CpuDevice device(dstune::Bytes{8} << 30U);
  Arena arena(device);
  const dstune::ModelSpec model;
  std::vector<Part> parts;
  add_products(parts, device, arena, model, batch * sequence);
  const std::size_t products = parts.size();
  add_layer_operations(parts, device, arena, model, batch, sequence);
  add_attention(parts, device, arena, model, batch, sequence);
  add_ends(parts, device, arena, model, batch, sequence);
  std::vector<Case> cases;
  for (const Part& part : parts) cases.push_back(part.timed);
  const std::vector<Seconds> times = dstune::bench::median_times(cases, rounds);

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

int main() {
  dstune::cpu::set_blas_threads(1);
  report_memory_passes(7);
  report_step(4, 128, 5);
  return 0;
}
