// Tensors are slices of buffers and begin anywhere: the same numbers come out wherever they lie,
// and what lies beside them stays as it is.
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/optimizers.hpp"
#include "core/device/operations/quantize.hpp"
#include "core/device/operations/random.hpp"
#include "tests/kernels/device/device_test.hpp"
#include "tests/support/numbers.hpp"

namespace dstune::testing::slices_test {

namespace {

constexpr std::int64_t kMargin = 64;
constexpr std::int64_t kOffsets[] = {1, 2, 4, 5, 8, 16};
const std::vector<std::int64_t> kSliceLengths = {2, 8, 30, 4096, 20010};

/// A slice that an operation gets.
struct Slot {
  DType dtype = DType::fp32;
  std::int64_t length = 0;
};

class SlicesTest : public DeviceTest {
 protected:
  /// Random bytes that are small numbers in every type; the same for the same seed.
  static std::vector<std::uint8_t> contents(DType dtype, std::int64_t length, unsigned seed) {
    const auto values = random_values(length, dtype, seed);
    std::vector<std::uint8_t> bytes;
    const auto append = [&bytes](const auto& value) {
      const auto* const begin = reinterpret_cast<const std::uint8_t*>(&value);
      bytes.insert(bytes.end(), begin, begin + sizeof value);
    };
    for (const double value : values) {
      const auto single = static_cast<float>(value);
      if (dtype == DType::fp64) append(value);
      if (dtype == DType::fp32) append(single);
      if (dtype == DType::bf16) append(from_float<BFloat16>(single));
      if (dtype == DType::fp16) append(from_float<Float16>(single));
      if (dtype == DType::int8) append(static_cast<std::int8_t>(single * 128));
    }
    return bytes;
  }

  /// The bytes of all slices after f(slices), which lie `offset` elements behind their buffers'
  /// margins.
  template <class F>
  std::vector<std::vector<std::uint8_t>> results(const std::vector<Slot>& slots,
                                                 std::int64_t offset, F f) {
    std::vector<Buffer> buffers;
    std::vector<Tensor> slices;
    std::vector<std::vector<std::uint8_t>> before;
    for (const Slot& slot : slots) {
      const std::int64_t whole = slot.length + 2 * kMargin;
      buffers.push_back(buffer(whole, slot.dtype));
      slices.push_back(buffers.back().tensor(slot.dtype).slice(kMargin + offset, slot.length));
      const auto margins = contents(slot.dtype, whole, 99);
      GetParam().upload(margins.data(), buffers.back().data(), margins.size());
      const auto values = contents(slot.dtype, slot.length, static_cast<unsigned>(slices.size()));
      GetParam().upload(values.data(), slices.back().data, values.size());
      before.push_back(download_bytes(buffers.back().data(), buffers.back().size()));
    }

    f(std::as_const(slices));

    std::vector<std::vector<std::uint8_t>> result;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      auto after = download_bytes(buffers[i].data(), buffers[i].size());
      const auto size = static_cast<std::int64_t>(size_of(slots[i].dtype));
      const auto begin = (kMargin + offset) * size;
      const auto end = begin + slots[i].length * size;
      result.emplace_back(after.begin() + begin, after.begin() + end);
      std::copy(before[i].begin() + begin, before[i].begin() + end, after.begin() + begin);
      EXPECT_EQ(after, before[i]) << "beside slice " << i;
    }
    return result;
  }

  using Results = std::vector<std::vector<std::uint8_t>>;

  /// The bits of an element, as a number: neighbours in a type are neighbours here.
  static std::int64_t bits_of(const std::vector<std::uint8_t>& bytes, std::size_t at,
                              std::size_t size) {
    std::int64_t bits = 0;
    std::memcpy(&bits, &bytes[at], size);
    return bits;
  }

  /// The first slice with elements that differ by more than `ulps`, and how many do.
  static std::string difference(const std::vector<Slot>& slots, const Results& actual,
                                const Results& expected, std::int64_t ulps) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::size_t size = size_of(slots[i].dtype);
      std::vector<std::size_t> different;
      for (std::size_t at = 0; at < actual[i].size(); at += size) {
        const std::int64_t off = bits_of(actual[i], at, size) - bits_of(expected[i], at, size);
        if (std::abs(off) > ulps) different.push_back(at / size);
      }
      if (different.empty()) continue;
      return concat(different.size(), " elements of slice ", i, " differ, the first is ",
                    different.front());
    }
    return {};
  }

  /// @param ulps  by which an element may differ
  template <class F>
  void expect_the_same_everywhere(const std::vector<Slot>& slots, F f, std::int64_t ulps = 0) {
    const auto expected = results(slots, 0, f);
    for (const std::int64_t offset : kOffsets) {
      SCOPED_TRACE(::testing::Message()
                   << slots[0].length << " " << name_of(slots[0].dtype) << " + " << offset);
      EXPECT_EQ(difference(slots, results(slots, offset, f), expected, ulps), "");
    }
  }

  /// Of slices of one length: f(tensors).
  template <class F>
  void expect_the_same_everywhere(const std::vector<DType>& dtypes, F f, std::int64_t ulps = 0) {
    for (const std::int64_t length : kSliceLengths) {
      std::vector<Slot> slots;
      for (const DType dtype : dtypes) slots.push_back({dtype, length});
      expect_the_same_everywhere(slots, f, ulps);
    }
  }

  void run_on(const std::vector<DType>& dtypes, const auto& make_operation) {
    expect_the_same_everywhere(
        dtypes, [&](const std::vector<Tensor>& t) { device().run(make_operation(t)); });
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, SlicesTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

using Tensors = std::vector<Tensor>;
constexpr DType kSingle = DType::fp32;

TEST_P(SlicesTest, AreFilledAlike) {
  for (const DType dtype : kDTypes) {
    run_on({dtype}, [](const Tensors& t) { return FillZero{t[0]}; });
    run_on({dtype}, [](const Tensors& t) { return FillConstant{t[0], 0.3}; });
    run_on({dtype}, [](const Tensors& t) {
      return FillNormal{.out = t[0], .stddev = 0.5, .seed = 3, .first_index = 5};
    });
  }
}

TEST_P(SlicesTest, AreCopiedAndCastAlike) {
  for (const DType from : kDTypes) {
    for (const DType to : kDTypes) {
      run_on({from, to}, [](const Tensors& t) { return Cast{t[0], t[1]}; });
    }
  }
  run_on({DType::int8, DType::int8}, [](const Tensors& t) { return Copy{t[0], t[1]}; });
}

TEST_P(SlicesTest, AreScaledAndAddedAlike) {
  const Buffer factor = upload({0.7});
  for (const DType dtype : kDTypes) {
    run_on({dtype}, [](const Tensors& t) { return Scale{t[0], 0.3}; });
    run_on({dtype}, [&](const Tensors& t) { return ScaleBy{t[0], factor.tensor(kSingle)}; });
    run_on({dtype, dtype}, [](const Tensors& t) { return Add{t[0], t[1]}; });
  }
  run_on({DType::fp64, DType::fp64}, [](const Tensors& t) { return Add{t[0], t[1]}; });
}

TEST_P(SlicesTest, DropOutAlike) {
  for (const DType dtype : kDTypes) {
    run_on({dtype, DType::int8, dtype}, [](const Tensors& t) {
      return Dropout{.in = t[0], .probability = 0.3, .seed = 5, .mask = t[1], .out = t[2]};
    });
    run_on({dtype, DType::int8, dtype}, [](const Tensors& t) {
      return DropoutBackward{.d_out = t[0], .probability = 0.3, .mask = t[1], .d_in = t[2]};
    });
  }
}

TEST_P(SlicesTest, AreUpdatedAlike) {
  run_on({kSingle, kSingle, kSingle}, [](const Tensors& t) {
    return Lion{
        .step = {.weight_decay = 0.1}, .gradient = t[0], .parameter = t[1], .exp_avg = t[2]};
  });
  run_on({kSingle, kSingle, kSingle, kSingle}, [](const Tensors& t) {
    const SgdStep step{.momentum = 0.9, .weight_decay = 0.1, .nesterov = true};
    return Sgd{
        .step = step, .gradient = t[0], .parameter = t[1], .momentum = t[2], .decayed = t[3]};
  });
}

// Second moments are no random numbers: they are not negative. nvcc joins products and sums of
// Lamb's update to other fused operations where elements come in packs.
TEST_P(SlicesTest, AreUpdatedAlikeByOptimizersThatKeepSquares) {
  expect_the_same_everywhere({kSingle, kSingle, kSingle, kSingle}, [&](const Tensors& t) {
    device().run(FillConstant{t[3], 0.25});
    device().run(Adam{.step = {.weight_decay = 0.1},
                      .gradient = t[0],
                      .parameter = t[1],
                      .exp_avg = t[2],
                      .exp_avg_sq = t[3]});
  });
  expect_the_same_everywhere({kSingle, kSingle, kSingle, kSingle, kSingle}, [&](const Tensors& t) {
    device().run(FillConstant{t[2], 0.25});
    device().run(Adagrad{.step = {.weight_decay = 0.1},
                         .gradient = t[0],
                         .parameter = t[1],
                         .sum = t[2],
                         .numerator = t[3],
                         .root = t[4]});
  });
  const std::int64_t ulps = GetParam().is_real_gpu ? 1 : 0;
  for (const DType dtype : kDTypes) {
    const auto lamb = [&](const Tensors& t) {
      device().run(FillConstant{t[3], 0.25});
      device().run(Lamb{.step = {.weight_decay = 0.1},
                        .gradient = t[0],
                        .parameter = t[1],
                        .exp_avg = t[2],
                        .exp_avg_sq = t[3],
                        .copy = t[4]});
    };
    expect_the_same_everywhere({dtype, kSingle, kSingle, kSingle, dtype}, lamb, ulps);
  }
}

TEST_P(SlicesTest, AreQuantizedAlike) {
  for (const std::int64_t size : {2, 8, 30, 1024, 17000}) {
    for (const int bits : {8, 4}) {
      const std::int64_t packed = packed_size(2 * size, bits);
      for (const DType dtype : kDTypes) {
        expect_the_same_everywhere(
            {{dtype, 2 * size}, {DType::int8, packed}, {kSingle, 2}}, [&](const Tensors& t) {
              device().run(Quantize{.in = t[0], .how = {bits}, .out = t[1], .steps = t[2]});
            });
        expect_the_same_everywhere(
            {{DType::int8, packed}, {kSingle, 2}, {dtype, 2 * size}}, [&](const Tensors& t) {
              device().run(Dequantize{.in = t[0], .bits = bits, .steps = t[1], .out = t[2]});
            });
      }
      expect_the_same_everywhere(
          {{DType::int8, 3 * packed}, {kSingle, 6}, {DType::int8, packed}, {kSingle, 2}},
          [&](const Tensors& t) {
            device().run(SumQuantized{.in = t[0],
                                      .bits = bits,
                                      .steps = t[1],
                                      .parts = 3,
                                      .out = t[2],
                                      .out_steps = t[3]});
          });
    }
  }
}

/// Of `rows` rows with a gap between them.
Matrix with_gaps(const Tensor& tensor, std::int64_t rows, std::int64_t cols, std::int64_t gap) {
  return {tensor.data, rows, cols, tensor.dtype, cols + gap};
}

TEST_P(SlicesTest, AreBroadcastAndSummedUpAlike) {
  constexpr std::int64_t kRows = 12;
  for (const std::int64_t cols : {8, 17, 1040}) {
    for (const std::int64_t gap : {0, 3, 8}) {
      for (const DType dtype : kDTypes) {
        const std::int64_t all = kRows * (cols + gap);
        const std::int64_t third = kRows / 3 * (cols + gap);
        const auto rows = [&](const Tensor& tensor) { return with_gaps(tensor, kRows, cols, gap); };
        const auto some = [&](const Tensor& tensor) {
          return with_gaps(tensor, kRows / 3, cols, gap);
        };
        expect_the_same_everywhere(
            {{dtype, all}, {dtype, third}, {dtype, all}}, [&](const Tensors& t) {
              device().run(AddBroadcast{.a = rows(t[0]), .b = some(t[1]), .out = rows(t[2])});
            });
        expect_the_same_everywhere({{dtype, all}, {dtype, third}}, [&](const Tensors& t) {
          device().run(AddBroadcastBackward{.d_out = rows(t[0]), .d_b = some(t[1])});
        });
        expect_the_same_everywhere({{dtype, all}, {dtype, cols}}, [&](const Tensors& t) {
          device().run(AddBias{.inout = rows(t[0]), .bias = t[1]});
        });
      }
    }
  }
}

TEST_P(SlicesTest, HaveTheSameSumsAndSpecials) {
  for (const DType dtype : kDTypes) {
    for (const std::int64_t length : kSliceLengths) {
      const auto values = random_values(length + kMargin, dtype, 1);
      const Buffer x = upload(values, dtype);
      for (const std::int64_t offset : kOffsets) {
        const std::vector<double> own(values.begin() + offset, values.begin() + offset + length);
        const Tensor slice = x.tensor(dtype).slice(offset, length);

        const double sum = test::sum_of_squares(device(), slice);

        EXPECT_NEAR(sum, dot(own, own), 1e-7 * sum) << length << " + " << offset;
        EXPECT_FALSE(test::has_inf_or_nan(device(), slice));
      }
    }
  }
}

}  // namespace

}  // namespace dstune::testing::slices_test
