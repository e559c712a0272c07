#include "core/report/formats/document.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace dstune::document_test {
namespace {

std::string never() { throw std::logic_error("nobody asked for it"); }

TEST(FormatAs, MakesOnlyWhatTheFormatPrints) {
  EXPECT_EQ(format_as(TableFormat::table, {[] { return "| a |\n"; }, never}), "| a |\n");
  EXPECT_EQ(format_as(TableFormat::json, {never, [] { return "[]\n"; }}), "[]\n");
}

}  // namespace
}  // namespace dstune::document_test
