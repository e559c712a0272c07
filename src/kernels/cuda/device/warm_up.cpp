#include "kernels/cuda/device/warm_up.hpp"

#include <vector>

#include "core/device/operations/activations.hpp"
#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/losses.hpp"
#include "core/device/operations/norms.hpp"
#include "core/device/operations/optimizers.hpp"
#include "core/device/operations/quantize.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/operations/rows.hpp"
#include "core/device/operations/softmax.hpp"
#include "kernels/cuda/base/check.hpp"

namespace dstune::cuda {

namespace {

constexpr std::int64_t kRows = 64;  // tokens, and words
constexpr std::int64_t kCols = 64;  // one head
constexpr std::int64_t kAll = kRows * kCols;

/// One operation after the other, on zeros of one type.
class WarmUp {
 public:
  WarmUp(Device& device, DType dtype) : device_(device), dtype_(dtype) {}

  void multiply() {
    for (const Transpose transpose : {Transpose::no, Transpose::yes}) {
      device_.run(Gemm{.transpose_b = transpose, .a = matrix(), .b = matrix(), .c = matrix()});
    }
  }

  void change_elements() {
    device_.run(FillConstant{all(), 1});
    device_.run(FillNormal{.out = all()});
    device_.run(Copy{all(), all()});
    device_.run(Cast{all(), all(DType::fp32)});
    device_.run(Cast{all(DType::fp32), all()});
    device_.run(Scale{all(), 1});
    device_.run(ScaleBy{all(), tensor(1, DType::fp32)});
    device_.run(Add{all(), all()});
    device_.run(AddBroadcast{matrix(), matrix(), matrix()});
    device_.run(AddBroadcastBackward{matrix(), matrix()});
    device_.run(AddBias{matrix(), row()});
    device_.run(BiasGradient{matrix(), row()});
    device_.run(Dropout{all(), 0.1, 1, all(DType::int8), all()});
    device_.run(DropoutBackward{all(), 0.1, all(DType::int8), all()});
  }

  void run_layers() {
    const LayerNormSaved saved{tensor(kRows, DType::fp32), tensor(kRows, DType::fp32)};
    device_.run(LayerNorm{matrix(), row(), row(), 1e-5, saved, matrix()});
    device_.run(LayerNormBackward{matrix(), matrix(), row(), saved, matrix(), row(), row()});
    const GeluSaved gelu{all(), all(), all()};
    device_.run(GeluNew{all(), gelu, all()});
    device_.run(GeluNewBackward{all(), all(), gelu, all()});
    device_.run(Embedding{tokens(), matrix(), matrix()});
    device_.run(EmbeddingBackward{matrix(), tokens(), matrix()});
    for (const double dropout : {0.0, 0.125}) attend(dropout);
    attend_eagerly();
  }

  void run_chains() {
    const bool is_fp32 = dtype_ == DType::fp32;
    const Matrix x = matrix();
    const RmsNormSaved saved{is_fp32 ? x : as_matrix(all(DType::fp32), kRows, kCols),
                             tensor(kRows, DType::fp32), matrix()};
    const Tensor scratch = tensor(rms_norm_backward_scratch(dtype_, kAll), DType::fp32);
    device_.run(
        RmsNorm{.x = x, .weight = row(), .saved = saved, .scratch = scratch, .out = matrix()});
    device_.run(RmsNormBackward{.d_out = matrix(),
                                .weight = row(),
                                .saved = saved,
                                .scratch = scratch,
                                .d_x = matrix(),
                                .d_weight = row()});
    Rotate rotate{.in = matrix(),
                  .heads = 1,
                  .head_size = kCols,
                  .in_stride = kCols,
                  .cos = as_matrix(all(), kRows, kCols / 2),
                  .sin = as_matrix(all(), kRows, kCols / 2),
                  .scratch = tensor(rotate_scratch(kAll), dtype_),
                  .out = matrix()};
    for (const bool inverse : {false, true}) {
      rotate.inverse = inverse;
      device_.run(rotate);
    }
    for (const Activation kind :
         {Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::silu}) {
      device_.run(Activate{.kind = kind, .x = all(), .out = all()});
      device_.run(ActivateBackward{.kind = kind, .d_out = all(), .saved = all(), .d_x = all()});
    }
    device_.run(Multiply{all(), all(), all()});
  }

  void reduce() {
    for (const DType of_norm : {DType::fp32, DType::fp64}) {  // stage 3 adds squares in fp64
      const Tensor sum = tensor(1, of_norm);
      device_.run(AddSquares{all(), sum});
      device_.run(Add{sum, sum});
      device_.run(ClipFactor{sum, 1, 1, tensor(1, DType::fp32)});
    }
    device_.run(FindInfOrNan{all(), tensor(1, DType::uint8)});
    if (dtype_ == DType::bf16) {  // quantized gradients travel in fp16
      device_.run(Cast{all(), all(DType::fp16)});
      device_.run(Cast{all(DType::fp16), all()});
    }
    const Tensor steps = tensor(kRows, DType::fp32);
    for (const int bits : {4, 8}) {
      const Tensor packed = tensor(packed_size(kAll, bits), DType::int8);
      const Tensor part = tensor(packed_size(kAll / 2, bits), DType::int8);
      device_.run(Quantize{all(), {.bits = bits}, packed, steps});
      device_.run(Dequantize{packed, bits, steps, all()});
      device_.run(SumQuantized{packed, bits, steps, 2, part, tensor(kRows / 2, DType::fp32)});
    }
  }

  /// DeepSpeed's Lamb has gradients of the model's type, and writes parameters of it.
  void update_by_lamb() {
    const auto state = [this] { return all(DType::fp32); };
    device_.run(Lamb{{}, all(), state(), state(), state(), all()});
  }

  void look_at_tokens() {
    device_.run(FillTokens{tokens(), kRows, 1});
    device_.run(FillPositions{tokens()});
    device_.run(LogSoftmax{matrix(), matrix()});
    device_.run(LogSoftmaxBackward{matrix(), matrix(), matrix()});
    device_.run(NextTokens{tokens(), kRows, tokens()});
    device_.run(NllLoss{matrix(), tokens(), tensor(1, DType::fp32)});
    device_.run(NllLossBackward{tokens(), 1, matrix()});
    lose_in_parts();
  }

  void update() {
    device_.run(Adam{{}, all(), all(), all(), all()});
    device_.run(Lion{{}, all(), all(), all()});
    device_.run(Adagrad{{}, all(), all(), all(), all(), all()});
    device_.run(Lamb{{}, all(), all(), all(), all()});
    device_.run(Sgd{{.momentum = 0.9, .weight_decay = 0.1}, all(), all(), all(), all()});
  }

 private:
  void lose_in_parts() {
    const auto per_row = [&] { return tensor(kRows, DType::fp32); };
    const Matrix logits = as_matrix(all(DType::fp32), kRows, kCols);
    const Tensor statistics = tensor(kRowStatistics * kRows, DType::fp32);
    const Matrix of_rows = as_matrix(statistics, kRowStatistics, kRows);
    device_.run(CopyRows{matrix(), matrix()});
    device_.run(CrossEntropy{matrix(), tokens(), per_row()});
    device_.run(FoldLogits{matrix(), tokens(), 0, of_rows});
    device_.run(LogSums{of_rows, per_row(), per_row()});
    device_.run(LogitsGradient{matrix(), tokens(), 0, per_row(), 1});
    device_.run(Argmax{logits, tokens()});
    device_.run(Entropy{logits, logits, logits, per_row()});
    device_.run(AddSum{per_row(), 1, tensor(1, DType::fp32)});
  }

  void attend(double dropout) {
    const AttentionShape shape{.batch = 1,
                               .sequence = kRows,
                               .heads = 1,
                               .kv_heads = 1,
                               .head_size = kCols,
                               .dropout = dropout};
    const auto head = [this] { return Heads{matrix(), kCols}; };
    const Tensor lse = tensor(kRows, DType::fp32);
    const Tensor workspace = tensor(device_.attention_workspace(shape), DType::fp32);
    device_.run(Attention{shape, head(), head(), head(), lse, workspace, matrix()});
    device_.run(AttentionBackward{shape, matrix(), head(), head(), head(), matrix(), lse, workspace,
                                  head(), head(), head()});
  }

  void attend_eagerly() {
    const AttentionShape shape{
        .batch = 1, .sequence = kRows, .heads = 1, .kv_heads = 1, .head_size = kCols};
    device_.run(StackHeads{shape, {matrix(), kCols}, 1, matrix()});
    device_.run(SpreadHeads{shape, matrix(), {matrix(), kCols}, 1});
    device_.run(FillMask{shape, all()});
    device_.run(AddMask{shape, all(), all(), all()});
    device_.run(ScaleTo{all(), 1, all()});
    device_.run(Softmax{matrix(), matrix()});
    device_.run(SoftmaxBackward{matrix(), matrix(), matrix()});
  }

  Tensor tensor(std::int64_t numel, DType dtype) {
    buffers_.push_back(make_buffer(device_, MemoryCategory::temporaries, numel, dtype));
    const Tensor made{buffers_.back().data(), numel, dtype};
    device_.run(FillZero{made});
    return made;
  }
  Tensor all() { return all(dtype_); }
  Tensor all(DType dtype) { return tensor(kAll, dtype); }
  Tensor row() { return tensor(kCols, dtype_); }
  Tensor tokens() { return tensor(kRows, DType::int64); }
  Matrix matrix() { return as_matrix(all(), kRows, kCols); }

  Device& device_;
  DType dtype_;
  std::vector<Buffer> buffers_;
};

void run_all(Device& device, DType dtype) {
  WarmUp own(device, dtype);
  own.multiply();
  own.change_elements();
  own.run_layers();
  own.run_chains();
  own.reduce();
  if (dtype != DType::fp32) return own.update_by_lamb();
  own.look_at_tokens();
  own.update();
}

}  // namespace

void warm_up(Device& device) {
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    try {
      run_all(device, dtype);
    } catch (const NoCodeError&) {
      throw;
    } catch (const CudaError&) {
      continue;  // such as bf16 before compute capability 8.0
    }
  }
  device.synchronize();
}

}  // namespace dstune::cuda
