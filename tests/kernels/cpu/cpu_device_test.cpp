#include "kernels/cpu/cpu_device.hpp"

#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/optimizers.hpp"
#include "kernels/cpu/products/blas.hpp"
#include "kernels/cpu/products/onednn.hpp"
#include "tests/support/numbers.hpp"

namespace dstune::cpu::cpu_device_test {

namespace {

TEST(CpuDeviceTest, LongOperationsAnswerInBetween) {
  constexpr std::int64_t kElements = std::int64_t{3} << 20U;
  CpuDevice device(Bytes{1} << 30U);
  const Buffer x = make_buffer(device, MemoryCategory::gradients, kElements, DType::bf16);
  int ticks = 0;
  device.on_tick([&] { ++ticks; });

  device.run(FillZero{x.tensor(DType::bf16)});

  EXPECT_EQ(ticks, 3);
}

TEST(CpuDeviceTest, LongProductsAnswerInBetween) {
  constexpr std::int64_t kSize = 1030;
  constexpr std::int64_t kInner = 2100;
  CpuDevice device(Bytes{1} << 30U);
  const auto zeros = [&](std::int64_t count) {
    Buffer buffer = make_buffer(device, MemoryCategory::gradients, count, DType::fp32);
    device.run(FillZero{buffer.tensor(DType::fp32)});
    return buffer;
  };
  const Buffer a = zeros(kSize * kInner);
  const Buffer b = zeros(kInner * kSize);
  const Buffer c = zeros(kSize * kSize);
  int ticks = 0;
  device.on_tick([&] { ++ticks; });

  device.run(Gemm{.a = as_matrix(a.tensor(DType::fp32), kSize, kInner),
                  .b = as_matrix(b.tensor(DType::fp32), kInner, kSize),
                  .c = as_matrix(c.tensor(DType::fp32), kSize, kSize)});

  EXPECT_GE(ticks, 2);
}

TEST(CpuDeviceTest, LongProductsOfBf16AnswerInBetweenAndAreWhole) {
  if (!Onednn::multiplies_bf16()) GTEST_SKIP() << "no oneDNN, or none for this processor";
  constexpr std::int64_t kRows = 2050;
  constexpr std::int64_t kCols = 4096;
  constexpr std::int64_t kInner = 2048;
  CpuDevice device(Bytes{1} << 30U);
  device.products().use_onednn({.bf16 = true}, 1);
  const auto filled = [&](std::int64_t count, double value) {
    Buffer buffer = make_buffer(device, MemoryCategory::gradients, count, DType::bf16);
    device.run(FillConstant{buffer.tensor(DType::bf16), value});
    return buffer;
  };
  const Buffer a = filled(kRows * kInner, 0.5);
  const Buffer b = filled(kInner * kCols, 0.25);
  const Buffer c = filled(kRows * kCols, 0);
  int ticks = 0;
  device.on_tick([&] { ++ticks; });

  device.run(Gemm{.a = as_matrix(a.tensor(DType::bf16), kRows, kInner),
                  .b = as_matrix(b.tensor(DType::bf16), kInner, kCols),
                  .c = as_matrix(c.tensor(DType::bf16), kRows, kCols)});

  EXPECT_GE(ticks, 2);
  EXPECT_EQ(test::sum_of_squares(device, c.tensor(DType::bf16)), 256.0 * 256 * kRows * kCols);
}

TEST(CpuDeviceTest, WhatATickThrowsEndsTheOperation) {
  CpuDevice device(1000);
  const Buffer x = make_buffer(device, MemoryCategory::gradients, 10, DType::fp32);
  device.on_tick([] { throw std::runtime_error("aborted"); });

  EXPECT_THROW(device.run(FillZero{x.tensor(DType::fp32)}), std::runtime_error);
}

TEST(CpuDeviceTest, HostTimePassesOnItsClockWhileItAnswers) {
  constexpr Seconds kTime = 200e-6;
  CpuDevice device(1);
  int ticks = 0;
  device.on_tick([&] { ++ticks; });
  const Seconds begin = device.now();

  device.spend_host_time(kTime);

  EXPECT_GE(device.now() - begin, kTime);
  EXPECT_GT(ticks, 0);
}

class ProductsOfAProfile : public testing::Test {
 protected:
  /// What a tiny product waits if the training's library reaches `flops_per_s`.
  Seconds wait_with(ProductRate rate) {
    CpuDevice device(1000);
    device.products().use_onednn({}, 1);
    HostOverhead overhead;
    overhead.products = {rate};
    device.set_host_overhead(overhead);
    float two = 2;
    float product = 0;
    const Matrix matrix{&two, 1, 1, DType::fp32, 1};
    const Seconds begin = device.now();
    device.run(Gemm{.a = matrix, .b = matrix, .c = {&product, 1, 1, DType::fp32, 1}});
    EXPECT_GE(device.now() - begin, device.ledger().library_wait());
    EXPECT_EQ(product, 4);
    return device.ledger().library_wait();
  }
};

TEST_F(ProductsOfAProfile, AreWaitedForWhereTheTrainingsLibraryIsSlower) {
  EXPECT_GT(wait_with({.dtype = DType::fp32, .threads = 1, .flops_per_s = 1e3}), 1e-3);
}

TEST_F(ProductsOfAProfile, AreNotWaitedForWhereItIsFaster) {
  EXPECT_EQ(wait_with({.dtype = DType::fp32, .threads = 1, .flops_per_s = 1e18}), 0);
}

TEST_F(ProductsOfAProfile, OfAnotherTypeOrWithOtherThreadsSayNothing) {
  EXPECT_EQ(wait_with({.dtype = DType::bf16, .threads = 1, .flops_per_s = 1e3}), 0);
  EXPECT_EQ(wait_with({.dtype = DType::fp32, .threads = 2, .flops_per_s = 1e3}), 0);
}

// torch looks up a kernel and packs operands for each.
TEST_F(ProductsOfAProfile, HaveALatencyOfTheirOwn) {
  EXPECT_GT(wait_with({.dtype = DType::fp32, .threads = 1, .flops_per_s = 1e18, .latency = 5e-3}),
            4e-3);
}

TEST_F(ProductsOfAProfile, TakeLongerTheMoreTheirResultIs) {
  EXPECT_GT(
      wait_with({.dtype = DType::fp32, .threads = 1, .flops_per_s = 1e18, .result_byte = 1e-3}),
      3e-3);
}

class AttentionOfAProfile : public testing::Test {
 protected:
  /// What attention of 4 rows and 2 heads waits, forward and backward.
  Seconds wait_with(const AttentionRate& rate, bool backward) {
    return wait_with(std::vector{rate}, backward, 0);
  }
  Seconds wait_with(const std::vector<AttentionRate>& rates, bool backward, double dropout) {
    CpuDevice device(Bytes{1} << 20U);
    device.products().use_onednn({}, 1);
    HostOverhead overhead;
    overhead.attention = rates;
    device.set_host_overhead(overhead);
    AttentionShape shape{.batch = 1, .sequence = 4, .heads = 2, .kv_heads = 2, .head_size = 4};
    shape.dropout = dropout;
    std::vector<float> numbers(32, 0.5F);
    std::vector<float> out(32);
    std::vector<float> lse(8);
    std::vector<float> workspace(static_cast<std::size_t>(device.attention_workspace(shape)));
    std::vector<float> gradients[3] = {out, out, out};
    const auto rows = [](std::vector<float>& of) {
      return Matrix{of.data(), 4, 8, DType::fp32, 8};
    };
    const Heads heads{rows(numbers), 4};
    const auto vector = [](std::vector<float>& of) {
      return Tensor{of.data(), static_cast<std::int64_t>(of.size()), DType::fp32};
    };
    device.run(Attention{shape, heads, heads, heads, vector(lse), vector(workspace), rows(out)});
    if (!backward) return device.ledger().library_wait();
    device.run(AttentionBackward{shape, rows(numbers), heads, heads, heads, rows(out), vector(lse),
                                 vector(workspace), Heads{rows(gradients[0]), 4},
                                 Heads{rows(gradients[1]), 4}, Heads{rows(gradients[2]), 4}});
    return device.ledger().library_wait();
  }
};

TEST_F(AttentionOfAProfile, IsWaitedForByItsRowsAndItsArithmetic) {
  EXPECT_GT(wait_with({DType::fp32, 1, {1e-3, 1e18}, {0, 1e18}}, false), 4 * 2 * 1e-3 / 2);
  EXPECT_GT(wait_with({DType::fp32, 1, {0, 1e18}, {1e-3, 1e18}}, true), 4 * 2 * 1e-3 / 2);
  EXPECT_GT(wait_with({DType::fp32, 1, {0, 1e5}, {0, 1e18}}, false), 1e-3);
}

TEST_F(AttentionOfAProfile, SaysNothingWhereTorchIsFasterOrRunsOtherwise) {
  EXPECT_EQ(wait_with({DType::fp32, 1, {0, 1e18}, {0, 1e18}}, true), 0);
  EXPECT_EQ(wait_with({DType::bf16, 1, {1, 1e18}, {1, 1e18}}, true), 0);
  EXPECT_EQ(wait_with({DType::fp32, 2, {1, 1e18}, {1, 1e18}}, true), 0);
}

TEST_F(AttentionOfAProfile, HasAnotherTimeWithDropoutWhereThatIsKnown) {
  const AttentionRate plain{DType::fp32, 1, {1e-3, 1e18}, {1e-3, 1e18}};
  const AttentionRate dropped{DType::fp32, 1, {1e-2, 1e18}, {1e-2, 1e18}, true};
  constexpr Seconds kPlain = 4 * 2 * 1e-3;  // one direction

  EXPECT_GT(wait_with({plain, dropped}, false, 0), kPlain / 2);
  EXPECT_LT(wait_with({plain, dropped}, false, 0), 2 * kPlain);
  EXPECT_GT(wait_with({plain, dropped}, false, 0.1), 5 * kPlain);
  EXPECT_GT(wait_with({plain, dropped}, true, 0.1), 15 * kPlain);
  EXPECT_GT(wait_with({plain}, false, 0.1), kPlain / 2);
  EXPECT_EQ(wait_with({dropped}, false, 0), 0);
}

TEST(CpuDeviceTest, ABufferInUseStaysWhenTheDeviceIsTrimmed) {
  CpuDevice device(1000);
  const Buffer buffer = make_buffer(device, MemoryCategory::buckets, 64, DType::fp32);
  device.run(FillConstant{buffer.tensor(DType::fp32), 0.5});

  device.trim();

  EXPECT_EQ(device.memory().in_use(), 256U);
  EXPECT_EQ(test::sum_of_squares(device, buffer.tensor(DType::fp32)), 64 * 0.25);
}

// What the next experiment's pages cost must not depend on this one's.
TEST(CpuDeviceTest, AfterATrimItsMemoryIsThatOfANewDevice) {
  if (Allocator().heap_size() == 0) GTEST_SKIP() << "a sanitizer's blocks have no heap";
  const auto faults_of_step = [](CpuDevice& device) {
    rusage before{};
    rusage after{};
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < 3; ++i) {
      const Buffer small = make_buffer(device, MemoryCategory::activations, 1 << 18, DType::fp32);
      const Buffer large = make_buffer(device, MemoryCategory::activations, 1 << 21, DType::fp32);
      device.run(FillZero{small.tensor(DType::fp32)});
      device.run(FillZero{large.tensor(DType::fp32)});
    }
    getrusage(RUSAGE_THREAD, &after);
    return static_cast<double>(after.ru_minflt - before.ru_minflt);
  };
  CpuDevice fresh(Bytes{1} << 30U);
  CpuDevice used(Bytes{1} << 30U);
  { const Buffer other = make_buffer(used, MemoryCategory::buckets, 7 << 20, DType::fp32); }
  faults_of_step(used);

  used.trim();

  EXPECT_NEAR(faults_of_step(used), faults_of_step(fresh), 8);
}

// Without memory of its own OpenBLAS tries for ever: the test's time limit is the assertion.
TEST(CpuDeviceTest, ProductsNeedNoMemoryOnceTheBlasHasTakenIts) {
  const auto multiply_without_memory = [] {
    CpuDevice device(Bytes{1} << 30U);
    const Buffer a = make_buffer(device, MemoryCategory::temporaries, 512 * 512, DType::fp32);
    const Buffer c = make_buffer(device, MemoryCategory::temporaries, 512 * 512, DType::fp32);
    device.run(FillConstant{a.tensor(DType::fp32), 0.5});
    const Matrix a_matrix = as_matrix(a.tensor(DType::fp32), 512, 512);
    const Scalar sum(device);
    sum.set_zero();
    set_blas_threads(1);  // with more, OpenBLAS asks for some in each product, and exits without
    take_blas_memory();
    const rlimit none{1, 1};
    setrlimit(RLIMIT_AS, &none);
    device.run(Gemm{.a = a_matrix, .b = a_matrix, .c = as_matrix(c.tensor(DType::fp32), 512, 512)});
    device.run(AddSquares{c.tensor(DType::fp32), sum.tensor()});
    _exit(test::read(device, sum) == 512.0 * 512 * 128 * 128 ? 0 : 1);
  };
  testing::FLAGS_gtest_death_test_style = "threadsafe";

  EXPECT_EXIT(multiply_without_memory(), testing::ExitedWithCode(0), "");
}

TEST(CpuDeviceTest, ProductsDoNotDependOnTheNumberOfBlasThreads) {
  CpuDevice device(1000000);
  const Buffer a = make_buffer(device, MemoryCategory::temporaries, 64 * 64, DType::fp32);
  const Buffer c = make_buffer(device, MemoryCategory::temporaries, 64 * 64, DType::fp32);
  const Matrix a_matrix = as_matrix(a.tensor(DType::fp32), 64, 64);
  device.run(FillConstant{a.tensor(DType::fp32), 0.5});

  for (const int threads : {2, 1}) {
    set_blas_threads(threads);
    device.run(Gemm{.a = a_matrix, .b = a_matrix, .c = as_matrix(c.tensor(DType::fp32), 64, 64)});

    EXPECT_EQ(test::sum_of_squares(device, c.tensor(DType::fp32)), 64.0 * 64 * 16 * 16);
  }
}

}  // namespace

}  // namespace dstune::cpu::cpu_device_test
