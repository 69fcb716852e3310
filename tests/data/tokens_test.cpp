#include "data/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "data/files.h"

namespace penstock {
namespace {

using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::npy;
using testing::TempFolder;
using testing::user_error;
using testing::write_file;

template <typename T>
std::string counting(std::size_t count, T first = 0) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return bytes_of(values);
}

class Tokens : public ::testing::Test {
 protected:
  std::string error() {
    return user_error([&] { open_tokens(request_); });
  }
  std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> sample(const TokenDataset& data,
                                                                         std::int64_t index) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(data.sequence()));
    std::vector<std::int32_t> labels = tokens;
    data.read(index, tokens.data(), labels.data());
    return {tokens, labels};
  }

  TempFolder folder_;
  std::string train_ = folder_ / "train.bin";
  std::string other_ = folder_ / "validation.bin";
  TokenRequest request_{"tokens:" + train_, 4, 50257};
};

TEST_F(Tokens, SamplesFollowEachOtherAndLabelsAreTheNextTokens) {
  write_file(train_, counting<std::uint16_t>(30, 100));
  write_file(other_, counting<std::uint16_t>(9, 7));
  request_.source += "," + other_;
  const TokenSplits splits = open_tokens(request_);
  EXPECT_EQ(splits.train->size(), 7);
  EXPECT_EQ(splits.validation->size(), 2);
  const auto [tokens, labels] = sample(*splits.train, 2);
  EXPECT_THAT(tokens, ElementsAre(108, 109, 110, 111));
  EXPECT_THAT(labels, ElementsAre(109, 110, 111, 112));
  EXPECT_THAT(sample(*splits.validation, 1).second, ElementsAre(12, 13, 14, 15));
}

TEST_F(Tokens, TheLastTenthIsKeptBack) {
  write_file(train_, counting<std::uint16_t>(100));
  const TokenSplits splits = open_tokens(request_);
  EXPECT_EQ(splits.train->size(), 22);
  EXPECT_EQ(splits.validation->size(), 2);
  EXPECT_THAT(sample(*splits.train, 21).second, ElementsAre(85, 86, 87, 88));
  EXPECT_THAT(sample(*splits.validation, 0).first, ElementsAre(90, 91, 92, 93));
}

TEST_F(Tokens, AreOfTwoBytesOrFour) {
  write_file(train_, counting<std::uint32_t>(50, 70000));
  request_.vocabulary = 128256;
  EXPECT_THAT(sample(*open_tokens(request_).train, 0).first, ElementsAre(70000, 70001, 70002, 70003));
  const std::string path = folder_ / "tokens.npy";
  write_file(path, npy("<u2", "(50,)", counting<std::uint16_t>(50, 5)));
  request_.source = "tokens:" + path;
  EXPECT_THAT(sample(*open_tokens(request_).train, 1).first, ElementsAre(9, 10, 11, 12));
}

TEST_F(Tokens, OfATextAreItsBytes) {
  write_file(train_, "Freude, schoener Goetterfunken, Tochter aus Elysium");
  request_.source = "text:" + train_;
  const auto [tokens, labels] = sample(*open_tokens(request_).train, 0);
  EXPECT_THAT(tokens, ElementsAre('F', 'r', 'e', 'u'));
  EXPECT_THAT(labels, ElementsAre('r', 'e', 'u', 'd'));
}

TEST_F(Tokens, AnEpochHasEachSampleOnceInAnOrderOfSeedAndEpoch) {
  write_file(train_, counting<std::uint16_t>(181));
  const TokenSplits splits = open_tokens(request_);
  SamplerOptions options;
  options.samples = splits.train->size();
  options.batch = 3;
  options.seed = 5;
  const auto epoch = [&](DataPosition start) {
    TokenBatches batches(*splits.train, Sampler(options), start);
    std::vector<std::int32_t> firsts;
    for (std::int64_t i = start.batch; i < batches.sampler().batches_per_epoch(); ++i) {
      std::vector<std::int32_t> tokens(12);
      std::vector<std::int32_t> labels(12);
      batches.next(tokens.data(), labels.data());
      for (std::size_t k = 0; k < 12; ++k) EXPECT_EQ(labels[k], tokens[k] + 1);
      for (std::size_t k = 0; k < 12; k += 4) firsts.push_back(tokens[k]);
    }
    EXPECT_EQ(batches.position(), (DataPosition{start.epoch + 1, 0}));
    return firsts;
  };
  const auto first = epoch({0, 0});
  EXPECT_EQ(std::set<std::int32_t>(first.begin(), first.end()).size(), first.size());
  EXPECT_EQ(first.size(), 39U);
  EXPECT_NE(first, epoch({1, 0}));
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  const auto resumed = epoch({0, 5});
  EXPECT_TRUE(std::equal(resumed.begin(), resumed.end(), first.begin() + 15));
}

TEST_F(Tokens, OutsideTheVocabularyAreRefusedWhereTheyStand) {
  write_file(train_, counting<std::uint16_t>(100, 50200));
  const TokenSplits splits = open_tokens(request_);
  EXPECT_NO_THROW(sample(*splits.train, 0));
  const std::string message = user_error([&] { sample(*splits.train, 14); });
  EXPECT_THAT(message,
              HasSubstr("train.bin (train) has token 50257 at 57, but the network's vocabulary has 50257"));
  const std::string later = user_error([&] { sample(*splits.validation, 0); });
  EXPECT_THAT(later, HasSubstr("token 50290 at 90"));
  write_file(train_, bytes_of(std::vector<std::uint32_t>(50, 0xFFFFFFFFU)));
  request_.vocabulary = 128256;
  EXPECT_THAT(user_error([&] { sample(*open_tokens(request_).train, 0); }), HasSubstr("token 2147483647"));
}

TEST_F(Tokens, BadFilesAreRefusedWithOneLine) {
  EXPECT_THAT(error(), HasSubstr("train.bin"));
  write_file(train_, "12345");
  EXPECT_THAT(error(), HasSubstr("has 5 bytes, which are no whole number of uint16 tokens"));
  write_file(train_, counting<std::uint16_t>(20));
  EXPECT_THAT(error(), HasSubstr("has 2 tokens, but a sample of 4 needs 5"));
  for (const char* source : {"tokens:", "tokens:a,", "tokens:a,b,c", "text:"}) {
    request_.source = source;
    EXPECT_THAT(error(), HasSubstr("names no data")) << source;
  }
  const std::string path = folder_ / "tokens.npy";
  write_file(path, npy("<f4", "(3,)", std::string(12, 'x')));
  request_.source = "tokens:" + path;
  EXPECT_THAT(error(), HasSubstr("holds <f4, but tokens are uint16"));
}

}  // namespace
}  // namespace penstock
