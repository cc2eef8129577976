#pragma once

#include <string_view>

#include <gtest/gtest.h>

namespace quern::test {

// f() throws an E whose message has this part.
template <class E, class F>
void expect_error(F&& f, std::string_view part) {
  try {
    f();
    ADD_FAILURE() << "no error; expected one with: " << part;
  } catch (const E& e) {
    EXPECT_NE(std::string_view(e.what()).find(part), std::string_view::npos) << e.what();
  }
}

}  // namespace quern::test
