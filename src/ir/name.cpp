#include "ir/name.h"

#include <functional>
#include <utility>

#include "base/interned.h"

namespace penstock::ir {
namespace {

struct HashWords {
  std::size_t operator()(const Name::Words& words) const {
    const std::hash<std::string> hash;
    return hash(words.before) * 31 + hash(words.behind);
  }
};

}  // namespace

Name::Name(std::string before, std::int32_t number, std::string behind)
    : words_(interned<Words, HashWords>({std::move(before), std::move(behind)})), number_(number) {}

std::string Name::text() const {
  if (number_ == kNoNumber) return words_->before + words_->behind;
  return words_->before + std::to_string(number_) + words_->behind;
}

Name Name::with(std::string_view more) const {
  if (number_ == kNoNumber) return {text().append(more)};
  return {words_->before, number_, words_->behind + std::string(more)};
}

}  // namespace penstock::ir
