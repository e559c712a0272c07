// A device that shows every operation before another device computes it.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "core/device/device.hpp"
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
#include "core/device/operations/relative_positions.hpp"
#include "core/device/operations/routing.hpp"
#include "core/device/operations/rows.hpp"
#include "core/device/operations/softmax.hpp"
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
  std::unique_ptr<DriveFile> open_drive_file(const std::string& directory) override {
    return inner_.open_drive_file(directory);
  }
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
#define DSTUNE_SPY_ON_HOST(Operation)                         \
  void compute_on_host(const Operation& operation) override { \
    spy_(work_of(operation));                                 \
    inner_.run_on_host(operation);                            \
  }
  DSTUNE_HOST_OPERATIONS(DSTUNE_SPY_ON_HOST)
#undef DSTUNE_SPY_ON_HOST

  Device& inner_;
  Spy spy_;
  std::map<void*, Buffer> buffers_;
};

}  // namespace dstune::test
