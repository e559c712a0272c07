#include "core/report/tables/table.hpp"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace dstune::table_test {
namespace {

TEST(Table, AlignsColumnsAsMarkdown) {
  Table table({{"#"}, {"zero", Table::Align::left}, {"step (ms)"}});
  table.add_row({"17", "2", "412.6"});
  table.add_row({"1", "offload", "12345.6"});

  EXPECT_EQ(table.to_string(),
            "|   # | zero    | step (ms) |\n"
            "| --: | ------- | --------: |\n"
            "|  17 | 2       |     412.6 |\n"
            "|   1 | offload |   12345.6 |\n");
}

TEST(Table, WidthsCountCharactersNotBytes) {
  const std::string umlaut = "\xC3\xB6";  // two bytes, one character
  Table table({{"name", Table::Align::left}});
  table.add_row({"g" + umlaut + umlaut + "d"});

  EXPECT_EQ(table.to_string(), "| name |\n| ---- |\n| g" + umlaut + umlaut + "d |\n");
}

TEST(Table, ACellStaysInItsRowAndColumn) {
  Table table({{"reason", Table::Align::left}});
  table.add_row({"a|b\nc"});

  EXPECT_EQ(table.to_string(), "| reason |\n| ------ |\n| a\\|b c |\n");
}

TEST(Table, RejectsRowsOfAnotherWidthAndNoColumns) {
  Table table({{"a"}, {"b"}});

  EXPECT_THROW(table.add_row({"1"}), std::invalid_argument);
  EXPECT_THROW(Table({}), std::invalid_argument);
}

}  // namespace
}  // namespace dstune::table_test
