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

TEST(Table, UnitsAreARowUnderTheRule) {
  Table table({{"step", Table::Align::right, "ms"}, {"zero"}});
  table.add_row({"412.6", "2"});

  EXPECT_EQ(table.to_string(),
            "|  step | zero |\n"
            "| ----: | ---: |\n"
            "|    ms |      |\n"
            "| 412.6 |    2 |\n");
}

TEST(Table, TheWidthsOfColumnsAddUpToThatOfALine) {
  const Table::Column name{"name", Table::Align::left};
  const Table::Column step{"step", Table::Align::right, "seconds"};
  Table table({name, step});
  table.add_row({"a|b", "1"});

  const std::string text = table.to_string();

  EXPECT_EQ(Table::width_of(name, {"a|b"}) + Table::width_of(step, {"1"}) + Table::kWidthOfBar,
            text.find('\n'));
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
