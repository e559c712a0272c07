// What a training step needs from the hardware under one rank.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/units.hpp"
#include "core/device/host_overhead.hpp"
#include "core/device/ledger.hpp"
#include "core/device/memory_budget.hpp"
#include "core/device/optimizer_steps.hpp"
#include "core/device/quantization.hpp"
#include "core/device/stream.hpp"
#include "core/device/tensor.hpp"
#include "core/device/timeline.hpp"

namespace dstune {

enum class Transpose { no, yes };

/// Dimensions of one attention call. The heads lie side by side in a row of q, k, v and out.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t head_size = 0;
  double dropout = 0;      ///< probability; the mask comes from the seed and is never stored
  std::uint64_t seed = 0;  ///< backward must be given the forward's
};

/// What gelu_new saves for backward, each (M, f): HF's eight elementwise kernels keep all of these
/// (zero-step.md 5.4).
struct GeluSaved {
  Tensor tanh;           ///< tanh(sqrt(2/pi) (x + 0.044715 x^3))
  Tensor half_x;         ///< 0.5 x
  Tensor one_plus_tanh;  ///< 1 + tanh
};

/// What LayerNorm saves beside its input: fp32, one per row.
struct LayerNormSaved {
  Tensor mean;
  Tensor rstd;
};

/// One accelerator, or one CPU process, as seen by one rank.
///
/// An operation is queued on the current stream (StreamScope; at first compute) and may still run
/// when its call returns; synchronize() waits for all of it. Used by one thread. All operations
/// compute in fp32 whatever the storage dtype; `out` parameters are overwritten unless a comment
/// says otherwise; tensors of one call must have matching shapes (asserted). M = rows = batch *
/// sequence.
class Device {
 public:
  explicit Device(Bytes memory_limit) : budget_(memory_limit) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual std::string name() const = 0;  ///< "cpu", "NVIDIA H200", ...

  /// False if memory has no contents (dry, sim): numbers read back are then stand-ins.
  virtual bool computes() const { return true; }

  /// True if work that repeats itself may be done once and counted (repeated_work.hpp).
  virtual bool folds() const { return false; }

  // Memory traffic.
  virtual void fill_zero(Tensor out) = 0;
  virtual void copy(Tensor in, Tensor out) = 0;         ///< same dtype
  virtual void cast(Tensor in, Tensor out) = 0;         ///< any dtypes
  virtual void scale(Tensor inout, double factor) = 0;  ///< inout *= factor
  virtual void add(Tensor inout, Tensor other) = 0;     ///< inout += other, same dtype
  /// Normal numbers, mean 0; element i depends on (seed, first_index + i) alone, so a shard can be
  /// filled as the whole tensor would be.
  virtual void fill_normal(Tensor out, double stddev, std::uint64_t seed,
                           std::int64_t first_index) = 0;
  virtual void fill_constant(Tensor out, double value) = 0;
  /// Host values into device memory and back; synchronous.
  virtual void write(std::span<const float> values, Tensor out) = 0;
  virtual void read(Tensor in, std::span<float> values) = 0;

  // Numbers that stay on the device: tensors of one element, fp32 unless said otherwise.
  /// sum (fp32 or fp64) += the squares of `in`, added up in double.
  virtual void add_squares(Tensor in, Tensor sum) = 0;
  /// flag (int8) = 1 if `in` has an inf or a NaN; otherwise it stays as it is.
  virtual void find_inf_or_nan(Tensor in, Tensor flag) = 0;
  /// What undoes the loss scale and clips: factor = 1 / (loss_scale * max(1, (norm + 1e-6) /
  /// clipping)) with the norm of the unscaled gradients, sqrt(squares) / loss_scale;
  /// squares are fp32 or fp64.
  /// @param clipping  0: none
  virtual void clip_factor(Tensor squares, double clipping, double loss_scale, Tensor factor) = 0;
  /// inout *= factor, a number on the device.
  virtual void scale_by(Tensor inout, Tensor factor) = 0;

  /// The only way of a number of a step to the host, where DeepSpeed's host waits for it: as
  /// host_sync(), with its transfer in the ledger.
  double read_scalar(Tensor scalar, HostSync reason);

  // Quantisation (quantization.hpp): groups of equal size, one fp32 step per group.
  /// `in` (any floating-point type) in steps.numel groups; `out` has packed_size() elements.
  virtual void quantize(Tensor in, Quantization how, Tensor out, Tensor steps) = 0;
  /// The inverse, in the order of `in`; out.numel is a multiple of steps.numel.
  virtual void dequantize(Tensor in, int bits, Tensor steps, Tensor out) = 0;
  /// `in` is `parts` quantised tensors, one after the other, `steps` likewise: quantises their sum
  /// again, in groups of the same size.
  virtual void sum_quantized(Tensor in, int bits, Tensor steps, int parts, Tensor out,
                             Tensor out_steps) = 0;

  // Linear algebra.
  /// C = op(A) op(B) + beta C. Shapes after transposition must agree; one dtype; beta is 0 or 1.
  virtual void gemm(Transpose transpose_a, Transpose transpose_b, Matrix a, Matrix b, double beta,
                    Matrix c) = 0;
  /// inout(i, :) += bias
  virtual void add_bias(Matrix inout, Tensor bias) = 0;
  /// out = column sums of d_out(M, n)
  virtual void bias_gradient(Matrix d_out, Tensor out) = 0;

  // Layers. d_x is the gradient of the loss by x.
  virtual void layer_norm(Matrix x, Tensor gamma, Tensor beta, double epsilon, LayerNormSaved saved,
                          Matrix out) = 0;
  virtual void layer_norm_backward(Matrix d_out, Matrix x, Tensor gamma, LayerNormSaved saved,
                                   Matrix d_x, Tensor d_gamma, Tensor d_beta) = 0;
  virtual void gelu_new(Tensor x, GeluSaved saved, Tensor out) = 0;
  virtual void gelu_new_backward(Tensor d_out, Tensor x, GeluSaved saved, Tensor d_x) = 0;
  /// Causal scaled dot product attention, scale 1/sqrt(head_size), without storing the scores.
  /// qkv (M, 3h) holds q, k, v side by side; out (M, h); lse fp32 (batch * heads * sequence).
  /// `workspace` has attention_workspace() bytes.
  virtual void attention(const AttentionShape& shape, Matrix qkv, Tensor lse, Tensor workspace,
                         Matrix out) = 0;
  virtual void attention_backward(const AttentionShape& shape, Matrix d_out, Matrix qkv, Matrix out,
                                  Tensor lse, Tensor workspace, Matrix d_qkv) = 0;
  /// fp32 elements of scratch that attention and its backward need.
  virtual std::int64_t attention_workspace(const AttentionShape& shape) const = 0;
  /// out = in * mask / (1 - p); the mask, one byte per element, is written to `mask`.
  virtual void dropout(Tensor in, double probability, std::uint64_t seed, void* mask,
                       Tensor out) = 0;
  virtual void dropout_backward(Tensor d_out, double probability, const void* mask,
                                Tensor d_in) = 0;
  /// out(i, :) = wte[tokens[i], :] + wpe[i % sequence, :]; tokens are int64 on the device.
  virtual void embedding(const std::int64_t* tokens, std::int64_t sequence, Matrix wte, Matrix wpe,
                         Matrix out) = 0;
  /// d_wte[tokens[i], :] += d_out(i, :); d_wpe likewise by position. Both are added to: zero first.
  virtual void embedding_backward(Matrix d_out, const std::int64_t* tokens, std::int64_t sequence,
                                  Matrix d_wte, Matrix d_wpe) = 0;
  /// Synthetic tokens: uniform in [0, vocab), from the seed alone.
  virtual void fill_tokens(std::int64_t* out, std::int64_t count, std::int64_t vocab,
                           std::uint64_t seed) = 0;

  // Loss: next-token cross-entropy over rows whose label is >= 0.
  /// log_probs = log_softmax(logits), row-wise; both fp32 (M, V).
  virtual void log_softmax(Matrix logits, Matrix log_probs) = 0;
  /// labels[i] = tokens[i + 1] within a sequence, and -1 at its end; `count` of them, a multiple of
  /// `sequence`.
  virtual void next_tokens(const std::int64_t* tokens, std::int64_t sequence, std::int64_t count,
                           std::int64_t* labels) = 0;
  /// sum += the mean over the counted rows of -log_probs[i, labels[i]]; fp32, one element.
  virtual void nll_loss(Matrix log_probs, const std::int64_t* labels, Tensor sum) = 0;
  /// out = loss_scale * d(nll_loss) / d(log_probs): zero but for one element per counted row.
  virtual void nll_loss_backward(const std::int64_t* labels, double loss_scale, Matrix out) = 0;
  /// d_logits = d_log_probs - exp(log_probs) * rowsum(d_log_probs)
  virtual void log_softmax_backward(Matrix d_log_probs, Matrix log_probs, Matrix d_logits) = 0;

  // Optimizers: everything fp32 and of equal length; traffic_of() tells their passes. A gradient
  // may be changed.
  virtual void adam(const AdamStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg,
                    Tensor exp_avg_sq) = 0;
  /// `momentum` is not used without momentum, `decayed` (scratch) not without weight decay.
  virtual void sgd(const SgdStep& step, Tensor gradient, Tensor parameter, Tensor momentum,
                   Tensor decayed) = 0;
  virtual void lion(const LionStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg) = 0;
  /// `numerator` and `root` are scratch.
  virtual void adagrad(const AdagradStep& step, Tensor gradient, Tensor parameter, Tensor sum,
                       Tensor numerator, Tensor root) = 0;
  /// The whole of a tensor, since its norm counts. The gradient may have any dtype; `copy`, unless
  /// empty, has the same and gets the new parameter too.
  virtual void lamb(const LambStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg,
                    Tensor exp_avg_sq, Tensor copy) = 0;

  // Order.
  Stream current_stream() const noexcept { return current_stream_; }
  /// True if streams run beside each other. Where they do not, all is done in call order.
  virtual bool overlaps() const { return false; }
  /// The end of what `stream` holds now.
  Event record(Stream stream);
  /// What is queued on `stream` from now on runs only after `event`.
  void wait(Stream stream, const Event& event);
  /// The current stream goes on only after `event`.
  void await(const Event& event) { wait(current_stream_, event); }
  /// The host goes on only after `event`.
  void host_wait(const Event& event);
  /// True if the host can see that `event` has passed.
  virtual bool has_passed(const Event& event) const {
    (void)event;
    return true;
  }
  /// When `event` passed, in seconds since an arbitrary start; call after synchronize().
  virtual Seconds time_of(const Event& event) const { return event.time; }
  /// The host goes on only after everything that is queued.
  void synchronize();
  /// Keeps the host busy for so long; the device goes on with what is queued. Time passes on now().
  /// Nothing where there is no time (dry).
  virtual void spend_host_time(Seconds time) = 0;
  /// From now on host_event() takes as long as `overhead` says.
  void set_host_overhead(const HostOverhead& overhead) { host_overhead_ = overhead; }
  /// DeepSpeed's host code would be busy here: spends its time and goes into the ledger.
  void host_event(HostEvent event);
  /// synchronize() where DeepSpeed's host waits: a host_event() too; goes into the ledger.
  void host_sync(HostSync reason);
  /// Likewise, for `event` alone.
  void host_sync(HostSync reason, const Event& event);

  /// The host's clock: seconds since an arbitrary start. The sim backend returns its virtual clock,
  /// so that its results are the same on every machine.
  virtual Seconds now() const = 0;

  /// Frees memory that is cached for reuse but not in use.
  virtual void trim() {}

  /// What the next operation of `stream` comes after.
  const StreamClock& clock_of(Stream stream) const noexcept {
    return clocks_[static_cast<std::size_t>(stream)];
  }

  MemoryBudget& memory() noexcept { return budget_; }
  const MemoryBudget& memory() const noexcept { return budget_; }

  /// Of the optimizer step that runs.
  Ledger& ledger() noexcept { return ledger_; }
  const Ledger& ledger() const noexcept { return ledger_; }
  /// Of the optimizer step that runs, where streams overlap.
  Timeline& timeline() noexcept { return timeline_; }

  /// Called now and then inside long operations and between operations (CPU), so that a busy rank
  /// still answers; may throw to end the experiment (ExperimentAborted).
  void on_tick(std::function<void()> callback) { tick_ = std::move(callback); }
  void tick() const {
    if (tick_) tick_();
  }

 private:
  friend class Buffer;
  friend class Scalar;
  friend class StreamScope;

  struct Memory {
    void* data;
    Bytes size;
    MemoryCategory category;
    Stream home;
  };
  /// Memory that was given back while other streams still used it.
  struct Pending {
    Memory memory;
    std::vector<Event> uses;
  };

  /// Called inside the budget only; still throws OutOfMemoryError when the device itself is full.
  virtual void* do_allocate(MemoryCategory category, Bytes size) = 0;
  virtual void do_free(void* data, Bytes size) noexcept = 0;
  /// `event` has its clock; gives it its time.
  virtual void do_record(Stream stream, Event& event) {
    (void)stream;
    (void)event;
  }
  virtual void do_wait(Stream stream, const Event& event) {
    (void)stream;
    (void)event;
  }
  virtual void do_host_wait(const Event& event) { (void)event; }
  virtual void do_synchronize() {}

  template <class Wait>
  void wait_as_host(HostSync reason, Wait wait);
  template <class Wait>
  void stalling(Wait wait);
  void* allocate(MemoryCategory category, Bytes size);
  /// What only the end of pending uses can free is waited for, as PyTorch's allocator does.
  void reserve(MemoryCategory category, Bytes size);
  void give_back(const Memory& memory, const std::array<bool, kStreams>& used_on) noexcept;
  void free(const Memory& memory) noexcept;
  void free_pending() noexcept;
  /// Memory of stream `home` is given back, which the streams `used_on` may still use.
  virtual void on_give_back(void* data, Stream home,
                            const std::array<bool, kStreams>& used_on) noexcept {
    (void)data;
    (void)home;
    (void)used_on;
  }

  MemoryBudget budget_;
  Ledger ledger_;
  Timeline timeline_;
  HostOverhead host_overhead_;
  std::function<void()> tick_;
  Stream current_stream_ = Stream::compute;
  std::array<StreamClock, kStreams> clocks_{};  // by stream: what it comes after
  std::vector<Pending> pending_;
};

/// What is queued while it lives goes to `stream`, as within torch.cuda.stream().
class StreamScope {
 public:
  StreamScope(Device& device, Stream stream)
      : device_(device), outer_(std::exchange(device.current_stream_, stream)) {}
  ~StreamScope() { device_.current_stream_ = outer_; }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Device& device_;
  Stream outer_;
};

}  // namespace dstune
