// A device without arithmetic: counts memory exactly, computes nothing.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "core/device/device.hpp"

namespace dstune {

/// Memory that an operation reads or writes.
struct Operand {
  const void* data = nullptr;
  Bytes extent = 0;  ///< from the first byte to behind the last
  Bytes bytes = 0;   ///< that move

  Operand(const void* begin, Bytes size) : data(begin), extent(size), bytes(size) {}
  Operand(Tensor tensor) : Operand(tensor.data, tensor.size()) {}  // NOLINT(*-explicit-*)
  Operand(const Matrix& matrix);                                   // NOLINT(*-explicit-*)

  /// Of which only `moved` bytes move.
  Operand of(Bytes moved) const {
    Operand part = *this;
    part.bytes = moved;
    return part;
  }
};

using Operands = std::initializer_list<Operand>;

/// Runs a training step for what it allocates and calls, on any machine: memory has no contents
/// (computes() is false), the budget is exact, every operation returns at once. Addresses are
/// distinct and not null, but must never be read. Numbers that are read back are 0.
class DryDevice : public Device {
 public:
  /// @param imitated  the device whose scratch is counted; none: a GPU with fused kernels
  explicit DryDevice(Bytes memory_limit, const Device* imitated = nullptr)
      : Device(memory_limit), imitated_(imitated) {}

  std::string name() const override { return "dry"; }
  bool computes() const override { return false; }

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
  /// The imitated device's; otherwise 0, as a fused GPU kernel's tiles stay on the chip.
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

  void spend_host_time(Seconds /*time*/) override {}
  Seconds now() const override { return 0; }

 protected:
  /// Called once by every operation.
  /// @param flops    additions and multiplications; a transcendental counts as one
  /// @param traffic  bytes read and written, each operand once
  virtual void account(double flops, Bytes traffic);
  /// Called once by every operation, before account().
  virtual void touch(std::string_view operation, Operands reads, Operands writes);
  void* do_allocate(MemoryCategory category, Bytes size) override;
  void do_free(void* data, Bytes size) noexcept override;

 private:
  void run(std::string_view operation, double flops, Operands reads, Operands writes);

  const Device* imitated_;
  std::uintptr_t next_address_ = 4096;
};

}  // namespace dstune
