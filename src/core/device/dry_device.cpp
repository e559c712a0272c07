#include "core/device/dry_device.hpp"

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

Operand::Operand(const Matrix& matrix)
    : data(matrix.data),
      extent(static_cast<Bytes>((matrix.rows - 1) * matrix.stride + matrix.cols) *
             size_of(matrix.dtype)),
      bytes(size(matrix)) {}

void DryDevice::account(double flops, Bytes traffic) {
  (void)flops;
  (void)traffic;
}

void DryDevice::touch(std::string_view operation, Operands reads, Operands writes) {
  (void)operation;
  (void)reads;
  (void)writes;
}

void DryDevice::run(std::string_view operation, double flops, Operands reads, Operands writes) {
  Bytes traffic = 0;
  for (const Operand& operand : reads) traffic += operand.bytes;
  for (const Operand& operand : writes) traffic += operand.bytes;
  touch(operation, reads, writes);
  account(flops, traffic);
}

void DryDevice::fill_zero(Tensor out) { run("fill_zero", 0, {}, {out}); }

void DryDevice::copy(Tensor in, Tensor out) { run("copy", 0, {in}, {out}); }

void DryDevice::cast(Tensor in, Tensor out) { run("cast", 0, {in}, {out}); }

void DryDevice::scale(Tensor inout, double /*factor*/) {
  run("scale", count(inout.numel), {inout}, {inout});
}

void DryDevice::add(Tensor inout, Tensor other) {
  run("add", count(inout.numel), {inout, other}, {inout});
}

// Philox and Box-Muller cost about ten operations per number.
void DryDevice::fill_normal(Tensor out, double /*stddev*/, std::uint64_t /*seed*/,
                            std::int64_t /*first_index*/) {
  run("fill_normal", 10 * count(out.numel), {}, {out});
}

void DryDevice::fill_constant(Tensor out, double /*value*/) { run("fill_constant", 0, {}, {out}); }

void DryDevice::write(std::span<const float> values, Tensor out) {
  touch("write", {}, {out});
  account(0, values.size_bytes() + out.size());
}

void DryDevice::read(Tensor in, std::span<float> values) {
  std::fill(values.begin(), values.end(), 0.0F);
  touch("read", {in}, {});
  account(0, values.size_bytes() + in.size());
}

void DryDevice::add_squares(Tensor in, Tensor sum) {
  run("add_squares", 2 * count(in.numel), {in, sum}, {sum});
}

void DryDevice::find_inf_or_nan(Tensor in, Tensor flag) {
  run("find_inf_or_nan", count(in.numel), {in}, {flag});
}

void DryDevice::clip_factor(Tensor squares, double /*clipping*/, double /*loss_scale*/,
                            Tensor factor) {
  run("clip_factor", 6, {squares}, {factor});
}

void DryDevice::scale_by(Tensor inout, Tensor factor) {
  run("scale_by", count(inout.numel), {inout, factor}, {inout});
}

// The largest value of a group, then one product and one rounding per element.
void DryDevice::quantize(Tensor in, Quantization /*how*/, Tensor out, Tensor steps) {
  run("quantize", 3 * count(in.numel), {in}, {out, steps});
}

void DryDevice::dequantize(Tensor in, int /*bits*/, Tensor steps, Tensor out) {
  run("dequantize", count(out.numel), {in, steps}, {out});
}

void DryDevice::sum_quantized(Tensor in, int bits, Tensor steps, int parts, Tensor out,
                              Tensor out_steps) {
  const double summed = count(in.numel) * 8 / bits;
  run("sum_quantized", 2 * summed + 3 * summed / parts, {in, steps}, {out, out_steps});
}

void DryDevice::gemm(Transpose transpose_a, Transpose /*transpose_b*/, Matrix a, Matrix b,
                     double beta, Matrix c) {
  const std::int64_t inner = transpose_a == Transpose::no ? a.cols : a.rows;
  const double flops = 2 * count(numel(c)) * count(inner);
  if (beta == 0) {
    run("gemm", flops, {a, b}, {c});
  } else {
    run("gemm", flops, {a, b, c}, {c});
  }
}

void DryDevice::add_bias(Matrix inout, Tensor bias) {
  run("add_bias", count(numel(inout)), {inout, bias}, {inout});
}

void DryDevice::bias_gradient(Matrix d_out, Tensor out) {
  run("bias_gradient", count(numel(d_out)), {d_out}, {out});
}

void DryDevice::layer_norm(Matrix x, Tensor gamma, Tensor beta, double /*epsilon*/,
                           LayerNormSaved saved, Matrix out) {
  run("layer_norm", 7 * count(numel(x)), {x, gamma, beta}, {saved.mean, saved.rstd, out});
}

void DryDevice::layer_norm_backward(Matrix d_out, Matrix x, Tensor gamma, LayerNormSaved saved,
                                    Matrix d_x, Tensor d_gamma, Tensor d_beta) {
  run("layer_norm_backward", 14 * count(numel(x)), {d_out, x, gamma, saved.mean, saved.rstd},
      {d_x, d_gamma, d_beta});
}

void DryDevice::gelu_new(Tensor x, GeluSaved saved, Tensor out) {
  run("gelu_new", 9 * count(x.numel), {x}, {saved.tanh, saved.half_x, saved.one_plus_tanh, out});
}

void DryDevice::gelu_new_backward(Tensor d_out, Tensor x, GeluSaved saved, Tensor d_x) {
  run("gelu_new_backward", 13 * count(x.numel),
      {d_out, x, saved.tanh, saved.half_x, saved.one_plus_tanh}, {d_x});
}

void DryDevice::attention(const AttentionShape& shape, Matrix qkv, Tensor lse, Tensor /*workspace*/,
                          Matrix out) {
  run("attention", causal_flops(shape), {qkv}, {lse, out});
}

// Backward recomputes the scores: five products of the size of forward's two.
void DryDevice::attention_backward(const AttentionShape& shape, Matrix d_out, Matrix qkv,
                                   Matrix out, Tensor lse, Tensor /*workspace*/, Matrix d_qkv) {
  run("attention_backward", 2.5 * causal_flops(shape), {d_out, qkv, out, lse}, {d_qkv});
}

std::int64_t DryDevice::attention_workspace(const AttentionShape& shape) const {
  return imitated_ == nullptr ? 0 : imitated_->attention_workspace(shape);
}

void DryDevice::dropout(Tensor in, double /*probability*/, std::uint64_t /*seed*/, void* mask,
                        Tensor out) {
  run("dropout", 2 * count(in.numel), {in}, {{mask, static_cast<Bytes>(in.numel)}, out});
}

void DryDevice::dropout_backward(Tensor d_out, double /*probability*/, const void* mask,
                                 Tensor d_in) {
  run("dropout_backward", 2 * count(d_out.numel), {d_out, {mask, static_cast<Bytes>(d_out.numel)}},
      {d_in});
}

// Only the rows that are looked up are read.
void DryDevice::embedding(const std::int64_t* tokens, std::int64_t /*sequence*/, Matrix wte,
                          Matrix wpe, Matrix out) {
  const Bytes rows = static_cast<Bytes>(numel(out)) * size_of(wte.dtype);
  run("embedding", count(numel(out)),
      {{tokens, token_bytes(out.rows)}, Operand(wte).of(rows), Operand(wpe).of(rows)}, {out});
}

void DryDevice::embedding_backward(Matrix d_out, const std::int64_t* tokens,
                                   std::int64_t /*sequence*/, Matrix d_wte, Matrix d_wpe) {
  const Bytes rows = static_cast<Bytes>(numel(d_out)) * size_of(d_wte.dtype);
  const Operand d_tokens = Operand(d_wte).of(rows);
  const Operand d_places = Operand(d_wpe).of(rows);
  run("embedding_backward", 2 * count(numel(d_out)),
      {{tokens, token_bytes(d_out.rows)}, d_out, d_tokens, d_places}, {d_tokens, d_places});
}

void DryDevice::fill_tokens(std::int64_t* out, std::int64_t tokens, std::int64_t /*vocab*/,
                            std::uint64_t /*seed*/) {
  run("fill_tokens", 0, {}, {{out, token_bytes(tokens)}});
}

void DryDevice::log_softmax(Matrix logits, Matrix log_probs) {
  run("log_softmax", 5 * count(numel(logits)), {logits}, {log_probs});
}

void DryDevice::next_tokens(const std::int64_t* tokens, std::int64_t /*sequence*/,
                            std::int64_t rows, std::int64_t* labels) {
  run("next_tokens", 0, {{tokens, token_bytes(rows)}}, {{labels, token_bytes(rows)}});
}

// One element per row is read.
void DryDevice::nll_loss(Matrix log_probs, const std::int64_t* labels, Tensor sum) {
  const Bytes chosen = static_cast<Bytes>(log_probs.rows) * size_of(log_probs.dtype);
  run("nll_loss", count(log_probs.rows),
      {Operand(log_probs).of(chosen), {labels, token_bytes(log_probs.rows)}, sum}, {sum});
}

void DryDevice::nll_loss_backward(const std::int64_t* labels, double /*loss_scale*/, Matrix out) {
  run("nll_loss_backward", 0, {{labels, token_bytes(out.rows)}}, {out});
}

void DryDevice::log_softmax_backward(Matrix d_log_probs, Matrix log_probs, Matrix d_logits) {
  run("log_softmax_backward", 4 * count(numel(log_probs)), {d_log_probs, log_probs}, {d_logits});
}

// The optimizers' traffic is that of their passes, not of their operands.
void DryDevice::adam(const AdamStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg,
                     Tensor exp_avg_sq) {
  touch("adam", {gradient}, {parameter, exp_avg, exp_avg_sq});
  account(14 * count(gradient.numel), bytes_of(traffic_of(step), gradient));
}

void DryDevice::sgd(const SgdStep& step, Tensor gradient, Tensor parameter, Tensor momentum,
                    Tensor decayed) {
  touch("sgd", {}, {gradient, parameter, momentum, decayed});
  account(8 * count(gradient.numel), bytes_of(traffic_of(step), gradient));
}

void DryDevice::lion(const LionStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg) {
  touch("lion", {}, {gradient, parameter, exp_avg});
  account(9 * count(gradient.numel), bytes_of(traffic_of(step), gradient));
}

void DryDevice::adagrad(const AdagradStep& step, Tensor gradient, Tensor parameter, Tensor sum,
                        Tensor numerator, Tensor root) {
  touch("adagrad", {}, {gradient, parameter, sum, numerator, root});
  account(9 * count(gradient.numel), bytes_of(traffic_of(step), gradient));
}

void DryDevice::lamb(const LambStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg,
                     Tensor exp_avg_sq, Tensor copy) {
  const Bytes copied = copy.numel == 0 ? 0 : size_of(copy.dtype);
  touch("lamb", {}, {gradient, parameter, exp_avg, exp_avg_sq, copy});
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
