// What nearly every test parses. Included by the build, never by a test (cmake/Precompile.cmake).
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../src/precompiled.hpp"
