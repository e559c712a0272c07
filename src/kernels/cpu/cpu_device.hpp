// The CPU as a Device: one thread of plain loops, and BLAS for the matrix products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device/device.hpp"
#include "kernels/cpu/allocator.hpp"

namespace dstune::cpu {

/// Every operation is finished when its call returns. Elements are stored as the tensors say and
/// computed in fp32. Dropout masks and random numbers depend on seed and index alone, so a shard
/// gets what the whole tensor would have had.
///
/// Long operations tick() about every millisecond, matrix products every 4 GFLOP.
///
/// Beside the budgeted buffers the device owns scratch for 16-bit operands and column sums. It is
/// not counted, since hardware with 16-bit arithmetic has none: at most 8 MiB for gemm,
/// 8 * sequence * head_size * 4 bytes for attention, 4 bytes per element of a group for
/// quantisation, 8 bytes per column for the others.
class CpuDevice final : public Device {
 public:
  explicit CpuDevice(Bytes memory_limit);

  std::string name() const override { return "cpu"; }

  void fill_zero(Tensor out) override;
  void copy(Tensor in, Tensor out) override;
  void cast(Tensor in, Tensor out) override;
  void scale(Tensor inout, double factor) override;
  void add(Tensor inout, Tensor other) override;
  void fill_normal(Tensor out, double stddev, std::uint64_t seed,
                   std::int64_t first_index) override;
  void fill_constant(Tensor out, double value) override;
  void write(std::span<const float> values, Tensor out) override;
  void read(Tensor in, std::span<float> values) override;

  void add_squares(Tensor in, Tensor sum) override;
  void find_inf_or_nan(Tensor in, Tensor flag) override;
  void clip_factor(Tensor squares, double clipping, double loss_scale, Tensor factor) override;
  void scale_by(Tensor inout, Tensor factor) override;

  void quantize(Tensor in, Quantization how, Tensor out, Tensor steps) override;
  void dequantize(Tensor in, int bits, Tensor steps, Tensor out) override;
  void sum_quantized(Tensor in, int bits, Tensor steps, int parts, Tensor out,
                     Tensor out_steps) override;

  void gemm(Transpose transpose_a, Transpose transpose_b, Matrix a, Matrix b, double beta,
            Matrix c) override;
  void add_bias(Matrix inout, Tensor bias) override;
  void bias_gradient(Matrix d_out, Tensor out) override;

  void layer_norm(Matrix x, Tensor gamma, Tensor beta, double epsilon, LayerNormSaved saved,
                  Matrix out) override;
  void layer_norm_backward(Matrix d_out, Matrix x, Tensor gamma, LayerNormSaved saved, Matrix d_x,
                           Tensor d_gamma, Tensor d_beta) override;
  void gelu_new(Tensor x, GeluSaved saved, Tensor out) override;
  void gelu_new_backward(Tensor d_out, Tensor x, GeluSaved saved, Tensor d_x) override;
  void attention(const AttentionShape& shape, Matrix qkv, Tensor lse, Tensor workspace,
                 Matrix out) override;
  void attention_backward(const AttentionShape& shape, Matrix d_out, Matrix qkv, Matrix out,
                          Tensor lse, Tensor workspace, Matrix d_qkv) override;
  std::int64_t attention_workspace(const AttentionShape& shape) const override;
  void dropout(Tensor in, double probability, std::uint64_t seed, void* mask, Tensor out) override;
  void dropout_backward(Tensor d_out, double probability, const void* mask, Tensor d_in) override;
  void embedding(const std::int64_t* tokens, std::int64_t sequence, Matrix wte, Matrix wpe,
                 Matrix out) override;
  void embedding_backward(Matrix d_out, const std::int64_t* tokens, std::int64_t sequence,
                          Matrix d_wte, Matrix d_wpe) override;
  void fill_tokens(std::int64_t* out, std::int64_t count, std::int64_t vocab,
                   std::uint64_t seed) override;

  void log_softmax(Matrix logits, Matrix log_probs) override;
  void next_tokens(const std::int64_t* tokens, std::int64_t sequence, std::int64_t count,
                   std::int64_t* labels) override;
  void nll_loss(Matrix log_probs, const std::int64_t* labels, Tensor sum) override;
  void nll_loss_backward(const std::int64_t* labels, double loss_scale, Matrix out) override;
  void log_softmax_backward(Matrix d_log_probs, Matrix log_probs, Matrix d_logits) override;

  void adam(const AdamStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg,
            Tensor exp_avg_sq) override;
  void sgd(const SgdStep& step, Tensor gradient, Tensor parameter, Tensor momentum,
           Tensor decayed) override;
  void lion(const LionStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg) override;
  void adagrad(const AdagradStep& step, Tensor gradient, Tensor parameter, Tensor sum,
               Tensor numerator, Tensor root) override;
  void lamb(const LambStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg,
            Tensor exp_avg_sq, Tensor copy) override;

  void spend_host_time(Seconds time) override;
  Seconds now() const override;
  void trim() override;

 private:
  void do_record(Stream /*stream*/, Event& event) override { event.time = now(); }
  void* do_allocate(MemoryCategory category, Bytes size) override;
  void do_free(void* data, Bytes size) noexcept override;

  /// At least `elements` floats, undefined contents, valid until the next call.
  float* scratch(std::int64_t elements);
  void gemm_fp32(Transpose transpose_a, Transpose transpose_b, Matrix a, Matrix b, double beta,
                 Matrix c);
  void gemm_16bit(Transpose transpose_a, Transpose transpose_b, Matrix a, Matrix b, double beta,
                  Matrix c);

  Allocator allocator_;
  std::vector<float> scratch_;
};

}  // namespace dstune::cpu
