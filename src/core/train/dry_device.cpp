#include "core/train/dry_device.hpp"

#include <algorithm>

namespace dstune {

namespace {

constexpr Bytes kTokenSize = sizeof(std::int64_t);

double count(std::int64_t elements) { return static_cast<double>(elements); }

std::int64_t numel(const Matrix& matrix) { return matrix.rows * matrix.cols; }

Bytes size(const Matrix& matrix) {
  return static_cast<Bytes>(numel(matrix)) * size_of(matrix.dtype);
}

Bytes token_bytes(std::int64_t tokens) { return static_cast<Bytes>(tokens) * kTokenSize; }

Bytes bytes_of(UpdateTraffic per_element, Tensor of) {
  return static_cast<Bytes>(of.numel) * per_element.total();
}

// Score matrices above the diagonal are never computed, hence half of 4 b a s^2 d.
double causal_flops(const AttentionShape& shape) {
  return 2 * count(shape.batch) * count(shape.heads) * count(shape.sequence) *
         count(shape.sequence) * count(shape.head_size);
}

}  // namespace

void DryDevice::account(double flops, Bytes traffic) {
  (void)flops;
  (void)traffic;
}

void DryDevice::fill_zero(Tensor out) { account(0, out.size()); }

void DryDevice::copy(Tensor in, Tensor out) { account(0, in.size() + out.size()); }

void DryDevice::cast(Tensor in, Tensor out) { account(0, in.size() + out.size()); }

void DryDevice::scale(Tensor inout, double /*factor*/) {
  account(count(inout.numel), 2 * inout.size());
}

void DryDevice::add(Tensor inout, Tensor other) {
  account(count(inout.numel), 2 * inout.size() + other.size());
}

// Philox and Box-Muller cost about ten operations per number.
void DryDevice::fill_normal(Tensor out, double /*stddev*/, std::uint64_t /*seed*/,
                            std::int64_t /*first_index*/) {
  account(10 * count(out.numel), out.size());
}

void DryDevice::fill_constant(Tensor out, double /*value*/) { account(0, out.size()); }

void DryDevice::write(std::span<const float> values, Tensor out) {
  account(0, values.size_bytes() + out.size());
}

void DryDevice::read(Tensor in, std::span<float> values) {
  std::fill(values.begin(), values.end(), 0.0F);
  account(0, values.size_bytes() + in.size());
}

double DryDevice::sum_of_squares(Tensor in) {
  account(2 * count(in.numel), in.size());
  return 1;
}

bool DryDevice::has_inf_or_nan(Tensor in) {
  account(count(in.numel), in.size());
  return false;
}

// The largest value of a group, then one product and one rounding per element.
void DryDevice::quantize(Tensor in, Quantization /*how*/, Tensor out, Tensor steps) {
  account(3 * count(in.numel), in.size() + out.size() + steps.size());
}

void DryDevice::dequantize(Tensor in, int /*bits*/, Tensor steps, Tensor out) {
  account(count(out.numel), in.size() + steps.size() + out.size());
}

void DryDevice::sum_quantized(Tensor in, int bits, Tensor steps, int parts, Tensor out,
                              Tensor out_steps) {
  const double summed = count(in.numel) * 8 / bits;
  account(2 * summed + 3 * summed / parts,
          in.size() + steps.size() + out.size() + out_steps.size());
}

void DryDevice::gemm(Transpose transpose_a, Transpose /*transpose_b*/, Matrix a, Matrix b,
                     double beta, Matrix c) {
  const std::int64_t inner = transpose_a == Transpose::no ? a.cols : a.rows;
  const Bytes result = beta == 0 ? size(c) : 2 * size(c);
  account(2 * count(numel(c)) * count(inner), size(a) + size(b) + result);
}

void DryDevice::add_bias(Matrix inout, Tensor bias) {
  account(count(numel(inout)), 2 * size(inout) + bias.size());
}

void DryDevice::bias_gradient(Matrix d_out, Tensor out) {
  account(count(numel(d_out)), size(d_out) + out.size());
}

void DryDevice::layer_norm(Matrix x, Tensor gamma, Tensor beta, double /*epsilon*/,
                           LayerNormSaved saved, Matrix out) {
  account(7 * count(numel(x)),
          size(x) + gamma.size() + beta.size() + saved.mean.size() + saved.rstd.size() + size(out));
}

void DryDevice::layer_norm_backward(Matrix d_out, Matrix x, Tensor gamma, LayerNormSaved saved,
                                    Matrix d_x, Tensor d_gamma, Tensor d_beta) {
  account(14 * count(numel(x)), size(d_out) + size(x) + gamma.size() + saved.mean.size() +
                                    saved.rstd.size() + size(d_x) + d_gamma.size() + d_beta.size());
}

void DryDevice::gelu_new(Tensor x, GeluSaved saved, Tensor out) {
  account(9 * count(x.numel), x.size() + saved.tanh.size() + saved.half_x.size() +
                                  saved.one_plus_tanh.size() + out.size());
}

void DryDevice::gelu_new_backward(Tensor d_out, Tensor x, GeluSaved saved, Tensor d_x) {
  account(13 * count(x.numel), d_out.size() + x.size() + saved.tanh.size() + saved.half_x.size() +
                                   saved.one_plus_tanh.size() + d_x.size());
}

void DryDevice::attention(const AttentionShape& shape, Matrix qkv, Tensor lse, Tensor /*workspace*/,
                          Matrix out) {
  account(causal_flops(shape), size(qkv) + lse.size() + size(out));
}

// Backward recomputes the scores: five products of the size of forward's two.
void DryDevice::attention_backward(const AttentionShape& shape, Matrix d_out, Matrix qkv,
                                   Matrix out, Tensor lse, Tensor /*workspace*/, Matrix d_qkv) {
  account(2.5 * causal_flops(shape),
          size(d_out) + size(qkv) + size(out) + lse.size() + size(d_qkv));
}

std::int64_t DryDevice::attention_workspace(const AttentionShape& shape) const {
  return imitated_ == nullptr ? 0 : imitated_->attention_workspace(shape);
}

void DryDevice::dropout(Tensor in, double /*probability*/, std::uint64_t /*seed*/, void* /*mask*/,
                        Tensor out) {
  account(2 * count(in.numel), in.size() + static_cast<Bytes>(in.numel) + out.size());
}

void DryDevice::dropout_backward(Tensor d_out, double /*probability*/, const void* /*mask*/,
                                 Tensor d_in) {
  account(2 * count(d_out.numel), d_out.size() + static_cast<Bytes>(d_out.numel) + d_in.size());
}

// Only the rows that are looked up are read.
void DryDevice::embedding(const std::int64_t* /*tokens*/, std::int64_t /*sequence*/, Matrix wte,
                          Matrix /*wpe*/, Matrix out) {
  const Bytes rows = static_cast<Bytes>(numel(out)) * size_of(wte.dtype);
  account(count(numel(out)), token_bytes(out.rows) + 2 * rows + size(out));
}

void DryDevice::embedding_backward(Matrix d_out, const std::int64_t* /*tokens*/,
                                   std::int64_t /*sequence*/, Matrix d_wte, Matrix /*d_wpe*/) {
  const Bytes rows = static_cast<Bytes>(numel(d_out)) * size_of(d_wte.dtype);
  account(2 * count(numel(d_out)), token_bytes(d_out.rows) + size(d_out) + 4 * rows);
}

void DryDevice::fill_tokens(std::int64_t* /*out*/, std::int64_t tokens, std::int64_t /*vocab*/,
                            std::uint64_t /*seed*/) {
  account(0, token_bytes(tokens));
}

void DryDevice::log_softmax(Matrix logits, Matrix log_probs) {
  account(5 * count(numel(logits)), size(logits) + size(log_probs));
}

// One element per row is read.
double DryDevice::nll_loss(Matrix log_probs, const std::int64_t* /*labels*/) {
  account(count(log_probs.rows),
          static_cast<Bytes>(log_probs.rows) * (kTokenSize + size_of(log_probs.dtype)));
  return 1;
}

void DryDevice::nll_loss_backward(const std::int64_t* /*labels*/, double /*loss_scale*/,
                                  Matrix out) {
  account(0, token_bytes(out.rows) + size(out));
}

void DryDevice::log_softmax_backward(Matrix d_log_probs, Matrix log_probs, Matrix d_logits) {
  account(4 * count(numel(log_probs)), size(d_log_probs) + size(log_probs) + size(d_logits));
}

void DryDevice::adam(const AdamStep& step, Tensor gradient, Tensor /*parameter*/,
                     Tensor /*exp_avg*/, Tensor /*exp_avg_sq*/) {
  account(14 * count(gradient.numel), bytes_of(traffic_of(step), gradient));
}

void DryDevice::sgd(const SgdStep& step, Tensor gradient, Tensor /*parameter*/, Tensor /*momentum*/,
                    Tensor /*decayed*/) {
  account(8 * count(gradient.numel), bytes_of(traffic_of(step), gradient));
}

void DryDevice::lion(const LionStep& step, Tensor gradient, Tensor /*parameter*/,
                     Tensor /*exp_avg*/) {
  account(9 * count(gradient.numel), bytes_of(traffic_of(step), gradient));
}

void DryDevice::adagrad(const AdagradStep& step, Tensor gradient, Tensor /*parameter*/,
                        Tensor /*sum*/, Tensor /*numerator*/, Tensor /*root*/) {
  account(9 * count(gradient.numel), bytes_of(traffic_of(step), gradient));
}

void DryDevice::lamb(const LambStep& step, Tensor gradient, Tensor /*parameter*/,
                     Tensor /*exp_avg*/, Tensor /*exp_avg_sq*/, Tensor copy) {
  const Bytes copied = copy.numel == 0 ? 0 : size_of(copy.dtype);
  account(28 * count(gradient.numel),
          bytes_of(traffic_of(step, size_of(gradient.dtype), copied), gradient));
}

void* DryDevice::do_allocate(MemoryCategory /*category*/, Bytes size_in_bytes) {
  constexpr std::uintptr_t kAlignment = 256;
  const std::uintptr_t address = next_address_;
  // At least one unit, so that an empty buffer has an address of its own too.
  next_address_ += (size_in_bytes / kAlignment + 1) * kAlignment;
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): never read
}

void DryDevice::do_free(void* /*data*/, Bytes /*size*/) noexcept {}

}  // namespace dstune
