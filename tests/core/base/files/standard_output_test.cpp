#include "core/base/files/standard_output.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"

namespace dstune::standard_output_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// Another file stands in for standard output.
class Redirected {
 public:
  explicit Redirected(int file) : kept_(::dup(STDOUT_FILENO)) { ::dup2(file, STDOUT_FILENO); }
  ~Redirected() { ::dup2(kept_.get(), STDOUT_FILENO); }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  FileHandle kept_;
};

TEST(Print, WritesAllOfTheText) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const FileHandle reader(ends[0]);
  FileHandle writer(ends[1]);
  {
    const Redirected redirected(writer.get());
    print("the table\n");
  }
  writer.reset();

  char text[32] = "";
  EXPECT_EQ(::read(reader.get(), text, sizeof(text)), 10);
  EXPECT_STREQ(text, "the table\n");
}

TEST(Print, SeesAFullDisk) {
  const FileHandle full = open_file("/dev/full", O_WRONLY);
  const Redirected redirected(full.get());

  EXPECT_THAT([] { print("x"); },
              ThrowsMessage<Error>(HasSubstr("cannot write standard output: No space left")));
}

TEST(Print, SeesThatTheReaderHasGone) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const FileHandle writer(ends[1]);
  ::close(ends[0]);
  secure_standard_streams();
  const Redirected redirected(writer.get());

  EXPECT_THAT([] { print("x"); },
              ThrowsMessage<Error>(HasSubstr("cannot write standard output: Broken pipe")));
}

}  // namespace
}  // namespace dstune::standard_output_test
