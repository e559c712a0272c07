#include "tests/support/checking_device.hpp"

#include <gtest/gtest.h>

#include "core/device/operations/elementwise.hpp"

namespace dstune::checking_device_test {
namespace {

using test::CheckingCollectives;
using test::CheckingDevice;
using testing::Test;

class CheckingDeviceTest : public Test {
 protected:
  Buffer make() { return make_buffer(device_, MemoryCategory::temporaries, 8, DType::fp32); }
  void write(Stream stream, Tensor tensor) {
    const StreamScope scope(device_, stream);
    device_.run(FillZero{tensor});
  }
  void read(Stream stream, Tensor tensor) {
    const StreamScope scope(device_, stream);
    const Buffer out = make();
    device_.run(BiasGradient{as_matrix(tensor, 1, tensor.numel),
                             out.tensor(DType::fp32).slice(0, tensor.numel)});
  }

  CheckingDevice device_{1000};
  Buffer buffer_ = make();
  Tensor tensor_ = buffer_.tensor(DType::fp32);
};

TEST_F(CheckingDeviceTest, FindsAReadBesideAWrite) {
  write(Stream::compute, tensor_);
  read(Stream::reduction, tensor_);

  ASSERT_EQ(device_.races().size(), 1U);
  EXPECT_EQ(device_.races()[0], "bias_gradient on reduction beside fill_zero on compute");
}

TEST_F(CheckingDeviceTest, FindsAWriteBesideARead) {
  read(Stream::compute, tensor_);
  write(Stream::gather, tensor_);

  EXPECT_EQ(device_.races().size(), 1U);
}

TEST_F(CheckingDeviceTest, LetsTwoStreamsReadTheSame) {
  read(Stream::compute, tensor_);
  read(Stream::reduction, tensor_);

  EXPECT_TRUE(device_.races().empty());
}

TEST_F(CheckingDeviceTest, LetsTwoStreamsWriteDifferentParts) {
  write(Stream::compute, tensor_.slice(0, 4));
  write(Stream::gather, tensor_.slice(4, 4));

  EXPECT_TRUE(device_.races().empty());
}

TEST_F(CheckingDeviceTest, AnEventOrdersWhatCameBeforeIt) {
  write(Stream::compute, tensor_);
  device_.wait(Stream::reduction, device_.record(Stream::compute));
  read(Stream::reduction, tensor_);

  EXPECT_TRUE(device_.races().empty());

  write(Stream::compute, tensor_);  // the reader is not awaited

  EXPECT_EQ(device_.races().size(), 1U);
}

TEST_F(CheckingDeviceTest, OrderIsHandedOn) {
  write(Stream::compute, tensor_);
  device_.wait(Stream::reduction, device_.record(Stream::compute));
  device_.wait(Stream::gather, device_.record(Stream::reduction));
  read(Stream::gather, tensor_);

  EXPECT_TRUE(device_.races().empty());
}

TEST_F(CheckingDeviceTest, AnEventOrdersNothingThatCameAfterIt) {
  const Event event = device_.record(Stream::compute);
  write(Stream::compute, tensor_);
  device_.wait(Stream::reduction, event);
  read(Stream::reduction, tensor_);

  EXPECT_EQ(device_.races().size(), 1U);
}

TEST_F(CheckingDeviceTest, TheHostOrdersWhatItWaitsFor) {
  write(Stream::compute, tensor_);
  device_.host_wait(device_.record(Stream::compute));
  read(Stream::reduction, tensor_);
  device_.synchronize();
  write(Stream::compute, tensor_);

  EXPECT_TRUE(device_.races().empty());
}

TEST_F(CheckingDeviceTest, FindsMemoryGivenBackTooEarly) {
  write(Stream::reduction, tensor_);
  buffer_.reset();

  ASSERT_EQ(device_.races().size(), 1U);
  EXPECT_EQ(device_.races()[0], "given back to compute beside fill_zero on reduction");
}

TEST_F(CheckingDeviceTest, WhoIsNamedMayStillUseIt) {
  write(Stream::reduction, tensor_);
  buffer_.used_on(Stream::reduction);
  buffer_.reset();

  EXPECT_TRUE(device_.races().empty());
}

TEST_F(CheckingDeviceTest, ACollectiveRunsAfterTheStreamThatCallsItAndBesideWhatFollows) {
  CheckingCollectives collectives(device_, 0, 2);
  write(Stream::compute, tensor_);
  const Event sum = collectives.all_reduce(tensor_, ReduceOp::sum, Purpose::other);

  EXPECT_TRUE(device_.races().empty());

  read(Stream::compute, tensor_);
  EXPECT_EQ(device_.races().size(), 1U);

  device_.await(sum);
  read(Stream::compute, tensor_);
  EXPECT_EQ(device_.races().size(), 1U);
}

}  // namespace
}  // namespace dstune::checking_device_test
