#include "core/input/read_text.hpp"

#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/base/files/file.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::read_text_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;
using testing_support::TemporaryDirectory;

// So short that no test waits, and long enough for what is there already.
constexpr Patience kNone{std::chrono::milliseconds(1), std::chrono::milliseconds(1)};
constexpr Patience kLong{std::chrono::minutes(1), std::chrono::minutes(1)};
constexpr std::size_t kLongest = 1000;

class ReadNamedPipe : public testing::Test {
 protected:
  ReadNamedPipe() : path_(directory_ / "pipe") { mkfifo(path_.c_str(), 0600); }

  Faults faults(const Patience& patience) const {
    Problems problems(path_);
    read_text_file(path_, kLongest, problems, patience);
    return faults_in(problems);
  }

  TemporaryDirectory directory_;
  std::string path_;
};

TEST_F(ReadNamedPipe, EndsWithoutAWriter) {
  EXPECT_EQ(faults(kNone), Faults{"file  is a pipe that nothing was written to for 1.0 ms"});
}

TEST_F(ReadNamedPipe, EndsIfItsWriterIsSilent) {
  const FileHandle silent = open_file(path_, O_RDWR);

  EXPECT_EQ(faults(kNone), Faults{"file  is a pipe from which nothing has come for 1.0 ms"});
}

TEST_F(ReadNamedPipe, ReadsWhatComesInPieces) {
  std::thread writer([this] {
    const FileHandle pipe = open_file(path_, O_WRONLY);
    write_all(pipe, "{\"a\":", path_);
    write_all(pipe, " 1}", path_);
  });
  Problems problems(path_);

  const auto text = read_text_file(path_, kLongest, problems, kLong);
  writer.join();

  EXPECT_EQ(text, "{\"a\": 1}");
}

TEST(ReadTextFile, TakesAnEmptyFileAndADevice) {
  Problems problems("null");

  EXPECT_EQ(read_text_file("/dev/null", kLongest, problems, kNone), "");
  EXPECT_FALSE(read_text_file("/dev/zero", kLongest, problems, kNone));

  EXPECT_EQ(faults_in(problems),
            Faults{"file  is longer than 1000 B: this is not a configuration"});
}

}  // namespace
}  // namespace dstune::read_text_test
