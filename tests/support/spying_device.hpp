// A device that shows every operation before another device computes it.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "core/device/device.hpp"
#include "core/device/operations/activate.hpp"
#include "core/device/operations/adagrad.hpp"
#include "core/device/operations/adam.hpp"
#include "core/device/operations/add.hpp"
#include "core/device/operations/attention.hpp"
#include "core/device/operations/attention_mask.hpp"
#include "core/device/operations/bias.hpp"
#include "core/device/operations/clamp.hpp"
#include "core/device/operations/copy.hpp"
#include "core/device/operations/cross_entropy.hpp"
#include "core/device/operations/dropout.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/device/operations/fill.hpp"
#include "core/device/operations/gelu_new.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/glu.hpp"
#include "core/device/operations/grouped_gemm.hpp"
#include "core/device/operations/lamb.hpp"
#include "core/device/operations/layer_norm.hpp"
#include "core/device/operations/lion.hpp"
#include "core/device/operations/log_softmax.hpp"
#include "core/device/operations/logits_tile.hpp"
#include "core/device/operations/mask_tokens.hpp"
#include "core/device/operations/masked_fill.hpp"
#include "core/device/operations/nll_loss.hpp"
#include "core/device/operations/norm_and_overflow.hpp"
#include "core/device/operations/position_bias.hpp"
#include "core/device/operations/quantize.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/operations/relative_positions.hpp"
#include "core/device/operations/relative_scores.hpp"
#include "core/device/operations/rms_norm.hpp"
#include "core/device/operations/rotate.hpp"
#include "core/device/operations/router_balance.hpp"
#include "core/device/operations/routing.hpp"
#include "core/device/operations/rows.hpp"
#include "core/device/operations/scale.hpp"
#include "core/device/operations/sgd.hpp"
#include "core/device/operations/shift_tokens.hpp"
#include "core/device/operations/softmax.hpp"
#include "core/device/operations/stack_heads.hpp"
#include "core/device/operations/token_metrics.hpp"
#include "core/device/operations/unfold.hpp"
#include "core/device/operations/weighted_rows.hpp"
#include "core/device/tensor.hpp"

namespace dstune::test {

/// Everything is done by `inner`, which must outlive this, on one stream.
class SpyingDevice final : public Device {
 public:
  using Spy = std::function<void(const Work& work)>;

  SpyingDevice(Device& inner, Spy spy)
      : Device(inner.memory().limit()), inner_(inner), spy_(std::move(spy)) {}

  std::string name() const override { return inner_.name(); }
  std::int64_t attention_workspace(const AttentionShape& shape) const override {
    return inner_.attention_workspace(shape);
  }
  void write(std::span<const float> values, Tensor out) override { inner_.write(values, out); }
  void read(Tensor in, std::span<float> values) override { inner_.read(in, values); }
  void spend_host_time(Seconds time) override { inner_.spend_host_time(time); }
  Seconds now() const override { return inner_.now(); }

 private:
  void* do_allocate(MemoryCategory category, Bytes size) override {
    Buffer buffer(inner_, category, size);
    void* const data = buffer.data();
    buffers_.emplace(data, std::move(buffer));
    return data;
  }
  void do_free(void* data, Bytes /*size*/) noexcept override { buffers_.erase(data); }
  void do_record(Stream stream, Event& event) override { event = inner_.record(stream); }

#define DSTUNE_SPY(Operation)                         \
  void compute(const Operation& operation) override { \
    spy_(work_of(operation));                         \
    inner_.run(operation);                            \
  }
  DSTUNE_OPERATIONS(DSTUNE_SPY)
#undef DSTUNE_SPY

  Device& inner_;
  Spy spy_;
  std::map<void*, Buffer> buffers_;
};

}  // namespace dstune::test
