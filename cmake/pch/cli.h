// What the files of cli/ include; precompiled.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "std.h"
