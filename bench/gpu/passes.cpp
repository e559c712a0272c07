#include <algorithm>
#include <string>

#include "bench/bench_operations.hpp"
#include "bench/gpu/rows.hpp"
#include "core/base/text.hpp"
#include "core/device/operations/activations.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/device/operations/losses.hpp"
#include "core/device/operations/norms.hpp"
#include "core/device/operations/optimizers.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/operations/softmax.hpp"

namespace dstune::bench {

namespace {

constexpr std::int64_t kParameters = std::int64_t{32} << 20U;  // 128 MiB of fp32: no L2 holds it
constexpr std::int64_t kHidden = 1600;                         // gpt2-xl's
constexpr std::int64_t kVocabulary = 50257;
constexpr std::int64_t kMostCopied = std::int64_t{512} << 20U;

/// Adds rows, each beside a copy that moves as many bytes.
class Passes {
 public:
  explicit Passes(Setting& setting) : setting_(setting), arena_(setting.device) {}

  Arena& arena() { return arena_; }

  template <class Operation>
  void add(const std::string& name, const Operation& op) {
    const Work work = work_of(op);
    const auto bytes = static_cast<double>(work.read_bytes() + work.written_bytes());
    const std::int64_t half = std::min(static_cast<std::int64_t>(bytes / 2), kMostCopied);
    const Copy copy = copy_of(half);
    const auto times = setting_.stopwatch.times(
        {[&] { setting_.device.run(op); }, [&] { setting_.device.run(copy); }});
    setting_.verdicts.add(name, bytes / times[0] * 1e-9,
                          2 * static_cast<double>(half) / times[1] * 1e-9);
  }

 private:
  Copy copy_of(std::int64_t bytes) {
    if (from_.numel < bytes) {
      from_ = arena_.tensor((bytes + 3) / 4);
      to_ = arena_.tensor((bytes + 3) / 4);
      from_ = {from_.data, from_.numel * 4, DType::int8};
      to_ = {to_.data, to_.numel * 4, DType::int8};
    }
    return {from_.slice(0, bytes), to_.slice(0, bytes)};
  }

  Setting& setting_;
  Arena arena_;
  Tensor from_;
  Tensor to_;
};

void add_optimizers(Setting& setting) {
  Passes passes(setting);
  Arena& arena = passes.arena();
  const std::int64_t count = kParameters / setting.divisor / setting.divisor;
  const Tensor gradient = arena.tensor(count);
  const Tensor parameter = arena.tensor(count);
  const Tensor first = arena.tensor(count);
  const Tensor second = arena.tensor(count);
  setting.device.run(FillZero{first});
  setting.device.run(FillZero{second});
  const Adam adam{
      .gradient = gradient, .parameter = parameter, .exp_avg = first, .exp_avg_sq = second};
  setting.device.run(adam);  // moments as those of training
  passes.add("Adam", adam);
  passes.add(
      "Lamb",
      Lamb{.gradient = gradient, .parameter = parameter, .exp_avg = first, .exp_avg_sq = second});
  passes.add("Lion", Lion{.gradient = gradient, .parameter = parameter, .exp_avg = first});
  passes.add("SGD with momentum", Sgd{.step = {.momentum = 0.9},
                                      .gradient = gradient,
                                      .parameter = parameter,
                                      .momentum = first});
  const Tensor sum = arena.tensor(1);
  const Tensor flag = arena.bytes(1);
  setting.device.run(FillZero{flag});
  passes.add("sum of squares, fp32", AddSquares{gradient, sum});
  passes.add("inf or NaN, fp32", FindInfOrNan{gradient, flag});
  const Tensor half = arena.tensor(count, DType::bf16);
  const Tensor other = arena.tensor(count, DType::bf16);
  passes.add("cast fp32 to bf16", Cast{parameter, half});
  passes.add("cast bf16 to fp32", Cast{half, parameter});
  passes.add("scale, fp32", Scale{gradient, 0.9999});
  passes.add("add, bf16", Add{half, other});
  passes.add("add, fp32", Add{gradient, parameter});
}

void add_layers(Setting& setting) {
  Passes passes(setting);
  Arena& arena = passes.arena();
  const std::int64_t rows = 4 * setting.sequences * setting.sequence;
  const std::int64_t h = kHidden / setting.divisor;
  const auto matrix = [&] { return as_matrix(arena.tensor(rows * h, DType::bf16), rows, h); };
  const auto vector = [&] { return arena.tensor(h, DType::bf16); };
  const Matrix x = matrix();
  const Matrix y = matrix();
  const Tensor gamma = vector();
  const LayerNormSaved moments{arena.tensor(rows), arena.tensor(rows)};
  passes.add(
      "LayerNorm",
      LayerNorm{
          .x = x, .gamma = gamma, .beta = vector(), .epsilon = 1e-5, .saved = moments, .out = y});
  passes.add("LayerNorm backward", LayerNormBackward{.d_out = y,
                                                     .x = x,
                                                     .gamma = gamma,
                                                     .saved = moments,
                                                     .d_x = matrix(),
                                                     .d_gamma = vector(),
                                                     .d_beta = vector()});
  passes.add("bias", AddBias{y, gamma});
  passes.add("bias gradient", BiasGradient{y, gamma});
  const Tensor mask = arena.bytes(rows * h);
  const Tensor in = arena.tensor(rows * h, DType::bf16);
  const Tensor out = arena.tensor(rows * h, DType::bf16);
  passes.add("dropout", Dropout{.in = in, .probability = 0.1, .seed = 1, .mask = mask, .out = out});
  passes.add("dropout backward",
             DropoutBackward{.d_out = out, .probability = 0.1, .mask = mask, .d_in = in});
}

void add_activation(Setting& setting) {
  Passes passes(setting);
  const std::int64_t count = setting.sequences * setting.sequence * 4 * kHidden / setting.divisor;
  const auto tensor = [&] { return passes.arena().tensor(count, DType::bf16); };
  const Tensor x = tensor();
  const GeluSaved saved{tensor(), tensor(), tensor()};
  const Tensor out = tensor();
  passes.add("gelu_new", GeluNew{.x = x, .saved = saved, .out = out});
  passes.add("gelu_new backward",
             GeluNewBackward{.d_out = out, .x = x, .saved = saved, .d_x = tensor()});
}

void add_ends(Setting& setting) {
  Passes passes(setting);
  Arena& arena = passes.arena();
  const std::int64_t rows = setting.sequences * setting.sequence;
  const std::int64_t h = kHidden / setting.divisor;
  const std::int64_t vocabulary = kVocabulary / setting.divisor;
  const Tensor tokens = arena.tokens(rows, vocabulary);
  const Matrix table = as_matrix(arena.tensor(vocabulary * h, DType::bf16), vocabulary, h);
  const Matrix out = as_matrix(arena.tensor(rows * h, DType::bf16), rows, h);
  passes.add("embedding", Embedding{.tokens = tokens, .table = table, .out = out});
  passes.add("embedding backward",
             EmbeddingBackward{.d_out = out, .tokens = tokens, .d_table = table});
  const std::int64_t half = std::max<std::int64_t>(rows / 2, 1);
  const Tensor labels = tokens.slice(0, half);
  const Matrix logits = arena.matrix(half, vocabulary);
  const Matrix log_probs = arena.matrix(half, vocabulary);
  passes.add("log-softmax", LogSoftmax{logits, log_probs});
  const Tensor loss = arena.tensor(1);
  setting.device.run(NllLoss{.log_probs = log_probs, .labels = labels, .sum = loss});
  passes.add("NLL backward", NllLossBackward{.labels = labels, .loss_scale = 1, .out = logits});
  passes.add("log-softmax backward",
             LogSoftmaxBackward{.d_log_probs = logits, .log_probs = log_probs, .d_logits = logits});
}

}  // namespace

void add_passes(Setting& setting) {
  setting.verdicts.begin("Kernels that memory bounds, beside a copy of as many bytes on the device",
                         "GB/s", "copy", 0.85);
  add_optimizers(setting);
  add_layers(setting);
  add_activation(setting);
  add_ends(setting);
}

}  // namespace dstune::bench
