#include <array>
#include <string>
#include <vector>

#include "bench/bench_operations.hpp"
#include "bench/gpu/libraries.hpp"
#include "bench/gpu/rows.hpp"
#include "core/base/text.hpp"
#include "core/device/operations/gemm.hpp"

namespace dstune::bench {

namespace {

/// y(M, n) = x(M, k) w
struct Linear {
  const char* name;
  std::int64_t k;
  std::int64_t n;
  /// w is stored (n, k), as torch.nn.Linear; else (k, n), with a bias, as GPT-2's Conv1D
  bool is_transposed;
};

struct Layers {
  const char* model;
  std::vector<Linear> linears;
};

// Of Hugging Face's openai-community/gpt2-xl and meta-llama/Llama-3.2-1B (8 of 32 heads for k, v).
std::array<Layers, 2> models() {
  return {{{"gpt2-xl",
            {{"attn.c_attn", 1600, 4800, false},
             {"attn.c_proj", 1600, 1600, false},
             {"mlp.c_fc", 1600, 6400, false},
             {"mlp.c_proj", 6400, 1600, false},
             {"lm_head", 1600, 50257, true}}},
           {"llama-3.2-1b",
            {{"q_proj, o_proj", 2048, 2048, true},
             {"k_proj, v_proj", 2048, 512, true},
             {"gate_proj, up_proj", 2048, 8192, true},
             {"down_proj", 8192, 2048, true},
             {"lm_head", 2048, 128256, true}}}}};
}

void add(Setting& setting, const std::string& name, const Gemm& op) {
  std::vector<Queue> queues = {[&] { setting.device.run(op); }};
  if (auto alone = product_alone(setting.device, setting.stopwatch, op)) queues.push_back(alone);
  const std::vector<Seconds> times = setting.stopwatch.times(queues);
  const double work = work_of(op).flops * 1e-12;
  setting.verdicts.add(name, work / times[0], times.size() > 1 ? work / times[1] : 0);
}

void add_linear(Setting& setting, const char* model, const Linear& linear) {
  Arena arena(setting.device);
  const std::int64_t rows = setting.sequences * setting.sequence;
  const std::int64_t k = linear.k / setting.divisor;
  const std::int64_t n = linear.n / setting.divisor;
  const auto matrix = [&](std::int64_t m, std::int64_t cols) {
    return as_matrix(arena.tensor(m * cols, DType::bf16), m, cols);
  };
  const Matrix x = matrix(rows, k);
  const Matrix y = matrix(rows, n);
  const Matrix w = linear.is_transposed ? matrix(n, k) : matrix(k, n);
  const auto as_stored = linear.is_transposed ? Transpose::yes : Transpose::no;
  const auto other = linear.is_transposed ? Transpose::no : Transpose::yes;
  const auto name = [&](const char* product) {
    return concat(model, " ", linear.name, ", ", product);
  };
  Gemm forward{.transpose_b = as_stored, .a = x, .b = w, .c = y};
  if (!linear.is_transposed) forward.bias = arena.tensor(n, DType::bf16);
  add(setting, name("forward"), forward);
  const Matrix d_x = matrix(rows, k);
  const Matrix d_y = matrix(rows, n);
  const Matrix d_w = matrix(w.rows, w.cols);
  add(setting, name("gradient of the input"), {.transpose_b = other, .a = d_y, .b = w, .c = d_x});
  add(setting, name("gradient of the weight"),
      {.transpose_a = Transpose::yes,
       .a = linear.is_transposed ? d_y : x,
       .b = linear.is_transposed ? x : d_y,
       .c = d_w});
}

}  // namespace

void add_products(Setting& setting) {
  setting.verdicts.begin(concat("Matrix products at ", setting.sequences, " x ", setting.sequence,
                                " tokens in bf16, beside the fastest that cuBLASLt proposes"),
                         "TFLOP/s", "cuBLASLt alone", 0.97);
  for (const Layers& layers : models()) {
    for (const Linear& linear : layers.linears) add_linear(setting, layers.model, linear);
  }
}

}  // namespace dstune::bench
