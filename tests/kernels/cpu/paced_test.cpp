#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/operations/activations.hpp"
#include "core/device/operations/attention.hpp"
#include "core/device/operations/norms.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/operations/softmax.hpp"
#include "kernels/cpu/cpu_device.hpp"

namespace dstune::cpu {

namespace {

constexpr std::int64_t kRows = 2;
constexpr std::int64_t kCols = 4;
constexpr std::int64_t kElements = kRows * kCols;
constexpr Seconds kElement = 1e-3;  // so much that none of these operations takes it by itself

/// Memory for the operands of one operation.
struct Operands {
  std::vector<std::vector<float>> kept;

  Tensor tensor(std::int64_t numel = kElements) {
    std::vector<float>& own = kept.emplace_back(static_cast<std::size_t>(numel), 0.5F);
    return {own.data(), numel, DType::fp32};
  }
  Matrix matrix(std::int64_t cols = kCols) {
    return {tensor(kRows * cols).data, kRows, cols, DType::fp32, cols};
  }
  Tensor mask() { return {tensor().data, kElements, DType::int8}; }
  GeluSaved gelu_saved() { return {tensor(), tensor(), tensor()}; }
  LayerNormSaved layer_norm_saved() { return {tensor(kRows), tensor(kRows)}; }
  RmsNormSaved rms_norm_saved(const Matrix& x) { return {x, tensor(kRows), matrix()}; }
};

struct PacedCase {
  const char* name;
  TimedOperation operation;
  bool backward;
  std::function<void(Device&, Operands&)> run;
};

PacedCase activate(const char* name, TimedOperation operation, Activation kind) {
  return {name, operation, false, [kind](Device& device, Operands& of) {
            device.run(Activate{kind, of.tensor(), of.tensor()});
          }};
}
PacedCase activate_back(const char* name, TimedOperation operation, Activation kind) {
  return {name, operation, true, [kind](Device& device, Operands& of) {
            device.run(ActivateBackward{kind, of.tensor(), of.tensor(), of.tensor()});
          }};
}
PacedCase gate(const char* name, TimedOperation operation, Activation kind) {
  return {name, operation, false, [kind](Device& device, Operands& of) {
            device.run(Glu{kind, of.matrix(2 * kCols), of.tensor(), of.tensor()});
          }};
}
PacedCase gate_back(const char* name, TimedOperation operation, Activation kind) {
  return {name, operation, true, [kind](Device& device, Operands& of) {
            device.run(GluBackward{kind, of.tensor(), of.matrix(2 * kCols), of.tensor(),
                                   of.tensor(), of.tensor()});
          }};
}
PacedCase rotate(const char* name, bool inverse) {
  return {name, TimedOperation::rotary, inverse, [inverse](Device& device, Operands& of) {
            Rotate op;
            op.in = of.matrix();
            op.heads = 1;
            op.head_size = kCols;
            op.in_stride = kCols;
            op.cos = of.matrix(kCols / 2);
            op.sin = of.matrix(kCols / 2);
            op.inverse = inverse;
            op.scratch = of.tensor(rotate_scratch(kElements));
            op.out = of.matrix();
            device.run(op);
          }};
}

std::vector<PacedCase> cases() {
  return {
      {"dropout", TimedOperation::dropout, false,
       [](Device& device, Operands& of) {
         device.run(Dropout{of.tensor(), 0.1, 1, of.mask(), of.tensor()});
       }},
      {"dropout_backward", TimedOperation::dropout, true,
       [](Device& device, Operands& of) {
         device.run(DropoutBackward{of.tensor(), 0.1, of.mask(), of.tensor()});
       }},
      activate("gelu", TimedOperation::gelu, Activation::gelu),
      activate_back("gelu_backward", TimedOperation::gelu, Activation::gelu),
      activate("gelu_tanh", TimedOperation::gelu_tanh, Activation::gelu_tanh),
      activate_back("gelu_tanh_backward", TimedOperation::gelu_tanh, Activation::gelu_tanh),
      activate("silu", TimedOperation::silu, Activation::silu),
      activate_back("silu_backward", TimedOperation::silu, Activation::silu),
      gate("gate", TimedOperation::silu, Activation::silu),
      gate_back("gate_backward", TimedOperation::silu, Activation::silu),
      {"gelu_new", TimedOperation::gelu_new, false,
       [](Device& device, Operands& of) {
         device.run(GeluNew{of.tensor(), of.gelu_saved(), of.tensor()});
       }},
      {"gelu_new_backward", TimedOperation::gelu_new, true,
       [](Device& device, Operands& of) {
         device.run(GeluNewBackward{of.tensor(), of.tensor(), of.gelu_saved(), of.tensor()});
       }},
      {"layer_norm", TimedOperation::layer_norm, false,
       [](Device& device, Operands& of) {
         device.run(LayerNorm{of.matrix(), of.tensor(kCols), of.tensor(kCols), 1e-5,
                              of.layer_norm_saved(), of.matrix()});
       }},
      {"layer_norm_backward", TimedOperation::layer_norm, true,
       [](Device& device, Operands& of) {
         device.run(LayerNormBackward{of.matrix(), of.matrix(), of.tensor(kCols),
                                      of.layer_norm_saved(), of.matrix(), of.tensor(kCols),
                                      of.tensor(kCols)});
       }},
      {"rms_norm", TimedOperation::rms_norm, false,
       [](Device& device, Operands& of) {
         RmsNorm op;
         op.x = of.matrix();
         op.weight = of.tensor(kCols);
         op.saved = of.rms_norm_saved(op.x);
         op.out = of.matrix();
         device.run(op);
       }},
      {"rms_norm_backward", TimedOperation::rms_norm, true,
       [](Device& device, Operands& of) {
         RmsNormBackward op;
         op.d_out = of.matrix();
         op.weight = of.tensor(kCols);
         op.saved = of.rms_norm_saved(of.matrix());
         op.scratch = of.tensor(rms_norm_backward_scratch(DType::fp32, kElements));
         op.d_x = of.matrix();
         op.d_weight = of.tensor(kCols);
         device.run(op);
       }},
      rotate("rotary", false),
      rotate("rotary_backward", true),
      {"log_softmax", TimedOperation::log_softmax, false,
       [](Device& device, Operands& of) {
         device.run(LogSoftmax{of.matrix(), of.matrix()});
       }},
      {"log_softmax_backward", TimedOperation::log_softmax, true,
       [](Device& device, Operands& of) {
         device.run(LogSoftmaxBackward{of.matrix(), of.matrix(), of.matrix()});
       }},
  };
}

class PacedOperations : public testing::TestWithParam<PacedCase> {
 protected:
  /// What the operation waits by a profile that has one rate.
  Seconds wait_with(OperationRate rate) const {
    CpuDevice device(1);
    device.products().use_onednn({}, 1);
    HostOverhead overhead;
    overhead.operations = {rate};
    device.set_host_overhead(overhead);
    Operands operands;
    const Seconds begin = device.now();
    GetParam().run(device, operands);
    EXPECT_GE(device.now() - begin, device.ledger().library_wait());
    return device.ledger().library_wait();
  }
  OperationRate own_rate() const {
    OperationRate rate{GetParam().operation, DType::fp32, 1};
    (GetParam().backward ? rate.backward : rate.forward) = kElement;
    return rate;
  }
};

TEST_P(PacedOperations, WaitForTheTimeOfTheirElements) {
  const Seconds wait = wait_with(own_rate());

  EXPECT_GT(wait, kElements * kElement / 10);
  EXPECT_LT(wait, kElements * kElement) << "what is left";
}

TEST_P(PacedOperations, DoNotWaitForTheOtherPassAnotherTypeOrOtherThreads) {
  OperationRate other_pass{GetParam().operation, DType::fp32, 1, kElement, kElement};
  (GetParam().backward ? other_pass.backward : other_pass.forward) = 0;
  OperationRate other_type = own_rate();
  other_type.dtype = DType::bf16;
  OperationRate other_threads = own_rate();
  other_threads.threads = 2;
  OperationRate other_operation = own_rate();
  other_operation.operation = static_cast<TimedOperation>(
      (static_cast<std::size_t>(GetParam().operation) + 1) % kTimedOperations);

  for (const OperationRate& rate : {other_pass, other_type, other_threads, other_operation}) {
    EXPECT_EQ(wait_with(rate), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PacedOperations, testing::ValuesIn(cases()),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace

}  // namespace dstune::cpu
