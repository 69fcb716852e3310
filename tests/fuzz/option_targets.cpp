#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "fuzz/targets.h"
#include "memory/process.h"
#include "tier/make_tier.h"

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
  attempt([&] { require(parse_memory_budget(input, kGiB) > 0, "a budget of nothing"); });
  attempt([&] { require(parse_bandwidth(input, "--x") > 0, "a bandwidth of nothing"); });
  attempt([&] { parse_tier_kind(input, "--x"); });
  attempt([&] { parse_verify_mode(input, "--x"); });
  const std::string utf8 = to_utf8(input);
  require(to_utf8(utf8) == utf8, "UTF-8 that is not UTF-8");
  require(printable(input).find('\x1b') == std::string::npos, "an escape sequence");
  require(printable(input).size() < 130, "a long line");
  require(to_utf8(without_controls(input)) == without_controls(input), "text that is not UTF-8");
  nests_deeper_than(input, 10);
}

}  // namespace penstock::fuzz
