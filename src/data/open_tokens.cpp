#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/npy.h"
#include "data/tokens.h"

namespace penstock {
namespace {

constexpr std::string_view kTokens = "tokens:";
constexpr std::string_view kText = "text:";
/// Without a file for validation, one token in so many is kept back for it.
constexpr std::int64_t kValidationShare = 10;
constexpr std::int64_t kRandomSamples = 1000;

using Part = TokenDataset::Part;

Part open_npy(const std::shared_ptr<const InputFile>& file) {
  const NpyHeader header = read_npy_header(*file);
  const std::int64_t token_bytes = header.type == "<u2" ? 2 : 4;
  if (header.type != "<u2" && header.type != "<u4") {
    throw UserError(fmt::format("{} holds {}, but tokens are uint16 (<u2) or uint32 (<u4)", file->path(),
                                printable(header.type)));
  }
  check_npy(*file, header, header.type, token_bytes, token_bytes == 2 ? "uint16" : "uint32");
  return {file, header.data_offset_bytes, header.elements(), token_bytes, 0};
}

Part open_part(const std::string& path, bool text, std::int64_t vocabulary) {
  const auto file = std::make_shared<const InputFile>(path);
  if (text) return {file, 0, file->size_bytes(), 1, 0};
  if (path.ends_with(".npy")) return open_npy(file);
  const std::int64_t token_bytes = vocabulary > 65536 ? 4 : 2;
  if (file->size_bytes() % token_bytes != 0) {
    throw UserError(
        fmt::format("{} has {} bytes, which are no whole number of uint{} tokens: write it anew, or as "
                    ".npy",
                    path, file->size_bytes(), 8 * token_bytes));
  }
  return {file, 0, file->size_bytes() / token_bytes, token_bytes, 0};
}

}  // namespace

bool is_token_source(const std::string& source) {
  return source.starts_with(kTokens) || source.starts_with(kText);
}

namespace {

TokenSplits random_tokens(const TokenRequest& request) {
  const auto open = [&](const char* name, std::int64_t first, std::int64_t samples) {
    const Part part{nullptr, 0, samples * request.sequence + 1, 4, first, request.seed};
    return std::make_unique<TokenDataset>(name, part, request.sequence, request.vocabulary);
  };
  require(request.sequence > 0 && request.vocabulary > 0, "random tokens need a sequence and a vocabulary");
  TokenSplits splits;
  splits.train = open("synthetic (train)", 0, kRandomSamples);
  splits.validation = open("synthetic (validation)", (kRandomSamples + 1) * request.sequence,
                           kRandomSamples / kValidationShare);
  return splits;
}

}  // namespace

TokenSplits open_tokens(const TokenRequest& request) {
  if (request.source == "synthetic") return random_tokens(request);
  if (!is_token_source(request.source)) {
    throw UserError(fmt::format("{} is no text: a text model takes {}FILE[,FILE], {}FILE[,FILE] or synthetic",
                                printable(request.source), kTokens, kText));
  }
  const bool text = request.source.starts_with(kText);
  const std::string paths = request.source.substr(text ? kText.size() : kTokens.size());
  const std::size_t comma = paths.find(',');
  const std::string first = paths.substr(0, comma);
  const std::string second = comma == std::string::npos ? "" : paths.substr(comma + 1);
  if (first.empty() || (comma != std::string::npos && second.empty()) ||
      second.find(',') != std::string::npos) {
    throw UserError(
        fmt::format("{} names no data: write {}FILE, or {}FILE,FILE with the second for validation",
                    printable(request.source), text ? kText : kTokens, text ? kText : kTokens));
  }
  Part train = open_part(first, text, request.vocabulary);
  Part validation = train;
  if (comma != std::string::npos) {
    validation = open_part(second, text, request.vocabulary);
  } else {
    validation.tokens = train.tokens / kValidationShare;
    train.tokens -= validation.tokens;
    validation.first_token = train.tokens;
    validation.offset_bytes = train.offset_bytes + train.tokens * train.token_bytes;
  }
  const auto open = [&](Part part, const std::string& path, const char* split) {
    const std::string name = fmt::format("{}{} ({})", text ? kText : kTokens, printable(path), split);
    return std::make_unique<TokenDataset>(name, std::move(part), request.sequence, request.vocabulary);
  };
  TokenSplits splits;
  splits.train = open(std::move(train), first, "train");
  splits.validation = open(std::move(validation), second.empty() ? first : second, "validation");
  return splits;
}

}  // namespace penstock
