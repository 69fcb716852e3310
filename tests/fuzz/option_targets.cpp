#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/parse.h"
#include "fuzz/targets.h"

namespace penstock::fuzz {
namespace {

/// Calls a parser, which may refuse.
template <typename Parse>
void attempt(const Parse& parse) {
  try {
    parse();
  } catch (const UserError&) {
  }
}

}  // namespace

void read_option(const std::string& input) {
  attempt([&] { require(parse_bytes(input, "--x") >= 0, "a size below 0"); });
  attempt([&] { require(cli::parse_memory_budget(input, kGiB) > 0, "a budget of nothing"); });
  attempt([&] { require(cli::parse_bandwidth(input) > 0, "a bandwidth of nothing"); });
  attempt([&] { cli::parse_tier(input); });
  attempt([&] { cli::parse_verify(input); });
  attempt([&] { cli::parse_pool(input); });
  attempt([&] { cli::parse_schedule(input); });
  const std::string utf8 = to_utf8(input);
  require(to_utf8(utf8) == utf8, "UTF-8 that is not UTF-8");
  require(printable(input).find('\x1b') == std::string::npos, "an escape sequence");
  require(printable(input).size() < 130, "a long line");
  require(to_utf8(without_controls(input)) == without_controls(input), "text that is not UTF-8");
  nests_deeper_than(input, 10);
}

}  // namespace penstock::fuzz
