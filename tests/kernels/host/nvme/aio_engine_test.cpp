#include "kernels/host/nvme/aio_engine.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/host/nvme/fake_drive.hpp"

namespace dstune::host::aio_engine_test {
namespace {

using testing_support::FakeAioCalls;
using testing_support::FakeDrive;

constexpr Bytes kBlock = 4096;

std::unique_ptr<AioEngine> engine_on(FakeDrive& drive, const AioSettings& settings) {
  return std::move(std::get<0>(AioEngine::make(settings, std::make_unique<FakeAioCalls>(drive))));
}

std::vector<std::byte> numbered(Bytes size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

FileTransfer transfer_of(AioDirection direction, std::vector<std::byte>& bytes, Bytes offset = 0) {
  return {.direction = direction,
          .file = 3,
          .path = "/ssd",
          .buffer = bytes.data(),
          .size = bytes.size(),
          .offset = offset};
}

std::optional<FileError> write(AioEngine& engine, Bytes size) {
  auto bytes = numbered(size);
  engine.start(transfer_of(AioDirection::write, bytes));
  return engine.wait();
}

std::vector<AioSettings> ways() {
  std::vector<AioSettings> all;
  for (const Bytes block : {kBlock, 3 * kBlock}) {
    for (const int depth : {1, 3, 64}) {
      for (const int threads : {1, 2, 5}) {
        for (int bits = 0; bits < 4; ++bits) {
          all.push_back({block, depth, threads, (bits & 1) != 0, (bits & 2) != 0});
        }
      }
    }
  }
  return all;
}

TEST(AioEngineTest, MovesEveryByteToItsPlaceWhateverTheSettings) {
  for (const AioSettings& settings : ways()) {
    for (const Bytes blocks : {1, 2, 16, 37}) {
      FakeDrive drive;
      const auto engine = engine_on(drive, settings);
      auto bytes = numbered(blocks * kBlock);
      std::vector<std::byte> found(bytes.size());

      engine->start(transfer_of(AioDirection::write, bytes, 8 * kBlock));
      const auto write_error = engine->wait();
      engine->start(transfer_of(AioDirection::read, found, 8 * kBlock));
      const auto read_error = engine->wait();

      EXPECT_FALSE(write_error || read_error);
      EXPECT_EQ(found, bytes);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), drive.bytes.begin() + 8 * kBlock,
                             drive.bytes.end()));
      EXPECT_EQ(drive.written, bytes.size());
      EXPECT_EQ(drive.read, bytes.size());
      EXPECT_LE(drive.deepest, static_cast<std::size_t>(settings.queue_depth));
    }
  }
}

TEST(AioEngineTest, EachThreadHasAnEqualPartAndAContextOfItsOwn) {
  FakeDrive drive;
  const auto engine = engine_on(drive, {.block_size = kBlock, .intra_op_parallelism = 4});

  EXPECT_EQ(write(*engine, 64 * kBlock), std::nullopt);

  ASSERT_EQ(drive.bytes_of_context.size(), 4U);
  for (const auto& [context, bytes] : drive.bytes_of_context) EXPECT_EQ(bytes, 16 * kBlock);
}

TEST(AioEngineTest, SingleSubmitIsACallForEachRequest) {
  for (const bool single : {false, true}) {
    FakeDrive drive;
    const auto engine = engine_on(
        drive,
        {.block_size = kBlock, .queue_depth = 4, .single_submit = single, .overlap_events = false});

    EXPECT_EQ(write(*engine, 10 * kBlock), std::nullopt);

    EXPECT_EQ(drive.submissions, single ? std::vector<long>(10, 1) : (std::vector<long>{4, 4, 2}));
  }
}

TEST(AioEngineTest, BatchesAreAwaitedWholeAndOverlappedRequestsOneByOne) {
  for (const bool overlap : {false, true}) {
    FakeDrive drive;
    const auto engine =
        engine_on(drive, {.block_size = kBlock, .queue_depth = 4, .overlap_events = overlap});

    EXPECT_EQ(write(*engine, 10 * kBlock), std::nullopt);

    EXPECT_EQ(drive.least_events,
              overlap ? std::vector<long>(10, 1) : (std::vector<long>{4, 4, 2}));
    EXPECT_EQ(drive.deepest, 4U);
  }
}

TEST(AioEngineTest, AnEventsErrorIsTheOperations) {
  for (const int code : {EIO, ENOSPC, EDQUOT}) {
    FakeDrive drive;
    drive.result = [&](const iocb& request) {
      return request.aio_offset == 3 * kBlock ? -static_cast<long>(code)
                                              : static_cast<long>(request.aio_nbytes);
    };
    const auto engine = engine_on(drive, {.block_size = kBlock, .queue_depth = 2});

    const auto error = write(*engine, 100 * kBlock);

    ASSERT_TRUE(error);
    EXPECT_EQ(*error, (FileError{.operation = "write",
                                 .file = "/ssd",
                                 .offset = 3 * kBlock,
                                 .size = kBlock,
                                 .code = code,
                                 .remark = {}}));
    EXPECT_LE(drive.written, 6 * kBlock) << "requests began after the fault";
    EXPECT_TRUE(drive.in_flight.begin()->second.empty());
    drive.result = {};
    EXPECT_EQ(write(*engine, 10 * kBlock), std::nullopt) << "the queue is whole again";
    EXPECT_EQ(drive.deepest, 2U);
  }
}

TEST(AioEngineTest, AShortRequestIsAFault) {
  FakeDrive drive;
  drive.result = [](const iocb& request) {
    return request.aio_offset == kBlock ? 512L : static_cast<long>(request.aio_nbytes);
  };
  const auto engine = engine_on(drive, {.block_size = kBlock});
  auto bytes = numbered(4 * kBlock);

  engine->start(transfer_of(AioDirection::read, bytes));
  const auto error = engine->wait();

  ASSERT_TRUE(error);
  EXPECT_EQ(to_text(*error), "read of 4.00 KiB at offset 4096 in /ssd: only 512 bytes were moved");
}

TEST(AioEngineTest, AReasonIsWorthMoreThanAShortRequest) {
  FakeDrive drive;
  drive.result = [](const iocb& request) { return request.aio_offset == 0 ? 0L : -EFBIG; };
  const auto engine = engine_on(drive, {.block_size = kBlock, .overlap_events = false});

  const auto error = write(*engine, 4 * kBlock);

  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, EFBIG);
  EXPECT_EQ(error->offset, kBlock);
}

TEST(AioEngineTest, TheKernelMayTakeFewerRequestsThanItIsGiven) {
  FakeDrive drive;
  int calls = 0;
  drive.accept = [&](long count) -> long {
    ++calls;
    if (calls % 3 == 0) return -EINTR;
    return calls % 3 == 1 ? std::min(count, 2L) : -EAGAIN;
  };
  const auto engine = engine_on(drive, {.block_size = kBlock, .queue_depth = 8});

  EXPECT_EQ(write(*engine, 50 * kBlock), std::nullopt);

  EXPECT_EQ(drive.written, 50 * kBlock);
}

TEST(AioEngineTest, AKernelThatTakesNothingIsAFault) {
  for (const long answer : {-EAGAIN, -EINVAL, 0}) {
    FakeDrive drive;
    drive.accept = [&](long) { return answer; };
    const auto engine = engine_on(drive, {.block_size = kBlock, .single_submit = true});

    const auto error = write(*engine, 5 * kBlock);

    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, answer == 0 ? EAGAIN : static_cast<int>(-answer));
    EXPECT_EQ(error->offset, 0U);
    EXPECT_EQ(error->remark.empty(), answer != -EINVAL);
  }
}

TEST(AioEngineTest, EventsThatCannotBeSeenEndTheContextBeforeTheBufferIsFree) {
  FakeDrive drive;
  int looks = 0;
  drive.events_fault = [&] { return ++looks == 1 ? -EINTR : -EFAULT; };
  const auto engine = engine_on(drive, {.block_size = kBlock});

  const auto error = write(*engine, 4 * kBlock);
  const auto next = write(*engine, kBlock);

  ASSERT_TRUE(error && next);
  EXPECT_EQ(to_text(*error), "io_getevents in /ssd: Bad address (EFAULT)");
  EXPECT_EQ(drive.destroyed, 1);
  EXPECT_EQ(next->remark, "after a fault");
}

TEST(AioEngineTest, AQueueThatTheKernelRefusesIsAFault) {
  FakeDrive drive;
  drive.setup_result = -EAGAIN;

  auto made = AioEngine::make({}, std::make_unique<FakeAioCalls>(drive));

  ASSERT_TRUE(std::holds_alternative<FileError>(made));
  EXPECT_EQ(to_text(std::get<FileError>(made)),
            "io_setup of 8 requests: Resource temporarily unavailable (EAGAIN); all processes "
            "together may have as many as sysctl fs.aio-max-nr says");
}

TEST(AioEngineTest, RunsOperationsInTheirOrderAndTellsTheFirstFault) {
  FakeDrive drive;
  drive.result = [](const iocb& request) {
    const bool fails = request.aio_offset == 20 * kBlock || request.aio_offset == kBlock;
    return fails ? (request.aio_offset == kBlock ? -EIO : -ENOSPC)
                 : static_cast<long>(request.aio_nbytes);
  };
  const auto engine = engine_on(drive, {.block_size = kBlock, .intra_op_parallelism = 2});
  auto first = numbered(2 * kBlock);
  auto second = numbered(4 * kBlock);

  engine->start(transfer_of(AioDirection::write, first, 20 * kBlock));
  engine->start(transfer_of(AioDirection::write, second));
  const auto error = engine->wait();

  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ENOSPC) << "the first operation's, though its offset is larger";
  EXPECT_EQ(engine->wait(), std::nullopt) << "it was told";
}

TEST(AioEngineTest, WaitsForNothingIfNothingWasStarted) {
  FakeDrive drive;
  const auto engine = engine_on(drive, {.block_size = kBlock});

  EXPECT_EQ(engine->wait(), std::nullopt);
  EXPECT_EQ(write(*engine, 0), std::nullopt);
}

TEST(AioEngineTest, EndsWhatIsUnderWayBeforeItIsGone) {
  FakeDrive drive;
  auto bytes = numbered(64 * kBlock);
  {
    const auto engine = engine_on(drive, {.block_size = kBlock, .intra_op_parallelism = 3});
    engine->start(transfer_of(AioDirection::write, bytes));
  }

  EXPECT_EQ(drive.destroyed, 3);
}

TEST(AioEngineTest, SettingsThatCutNothingAreRefused) {
  for (const AioSettings& settings :
       {AioSettings{.queue_depth = 0}, AioSettings{.intra_op_parallelism = 0},
        AioSettings{.block_size = 0}, AioSettings{.block_size = 1000}}) {
    EXPECT_THROW(AioEngine::make(settings), std::invalid_argument);
  }
}

}  // namespace
}  // namespace dstune::host::aio_engine_test
