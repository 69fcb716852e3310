#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cli/refused.h"
#include "data/safetensors.h"

// Text models on the command line: a small GPT-2 from a config.json on a text of the test's own.
namespace penstock::testing {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr const char* kTiny = R"({"model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 32,
  "vocab_size": 256, "n_positions": 32, "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.1})";
constexpr const char* kTinyLlama = R"({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 32,
  "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300,
  "max_position_embeddings": 64})";

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class TextCommand : public ::testing::Test {
 protected:
  TextCommand() {
    std::ofstream(model_) << kTiny;
    std::ofstream text(folder_.file("text.txt"));
    for (int i = 0; i < 200; ++i) text << "the quick brown fox jumps over the lazy dog; ";
  }
  Words train(int steps) const {
    return {"train",       model_,
            "--data",      "text:" + folder_.file("text.txt"),
            "--sequence",  "32",
            "--batch",     "4",
            "--optimizer", "adamw",
            "--lr",        "0.003",
            "--steps",     std::to_string(steps)};
  }
  Words evaluate(const std::string& weights) const {
    return {"eval", model_,   "--data", "text:" + folder_.file("text.txt"), "--sequence", "32", "--batch",
            "5",    "--init", weights};
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_.file("config.json");
};

TEST_F(TextCommand, LearnsAPlainTextFile) {
  const auto result = penstock_json(train(60) + Words{"--evaluate"});
  EXPECT_GT(result["loss"].front().get<double>(), 5);
  EXPECT_LT(result["loss"].back().get<double>(), 2.5);
  EXPECT_GT(result["validation_loss"].get<double>(), 0);
  EXPECT_LT(result["validation_loss"].get<double>(), 2.5);
  EXPECT_NEAR(result["perplexity"].get<double>(), std::exp(result["validation_loss"].get<double>()), 1e-9);
  EXPECT_NEAR(result["tokens_per_second"].get<double>(), 32 * result["images_per_second"].get<double>(),
              1e-6);
}

TEST_F(TextCommand, MicroBatchesAndClippingResumeBitForBit) {
  const Words careful{"--accumulate", "2",        "--clip",         "0.5", "--betas",       "0.9,0.95",
                      "--decay",      "matrices", "--weight-decay", "0.1", "--state-dtype", "bf16"};
  const std::string checkpoint = folder_.file("checkpoint");
  const auto whole = penstock_json(train(6) + careful + Words{"--evaluate"});
  EXPECT_EQ(whole["gradient_norm"].size(), 6U);
  EXPECT_GT(whole["gradient_norm"].front().get<double>(), 0.5);
  penstock_json(train(3) + careful + Words{"--checkpoint", checkpoint});
  const auto resumed = penstock_json(train(6) + careful + Words{"--resume", checkpoint});
  EXPECT_EQ(resumed["weights_sha256"], whole["weights_sha256"]);
  const auto plain = penstock_json(train(6));
  EXPECT_NE(plain["weights_sha256"], whole["weights_sha256"]);
  EXPECT_FALSE(plain.contains("gradient_norm"));
}

TEST_F(TextCommand, WhatMicroBatchesCannotDoIsRefused) {
  expect_refused(train(2) + Words{"--accumulate", "3"},
                 "a batch of 4 does not divide into 3 micro-batches of the same size; use a multiple, 6 say");
  expect_refused(train(2) + Words{"--betas", "0.9"},
                 "--betas: '0.9' is not two numbers; write them as 0.9,0.95");
  expect_refused(train(2) + Words{"--betas", "0.9,1"}, "beta2 1 is out of range");
  expect_refused(train(2) + Words{"--decay", "some"},
                 "--decay 'some' is not known; there are all and matrices");
  expect_refused(train(2) + Words{"--state-dtype", "f16"}, "--state-dtype 'f16' is not known");
  expect_refused({"train", "lenet", "--steps", "2", "--state-dtype", "bf16"}, "use adam or adamw");
}

TEST_F(TextCommand, ProgressSpeaksOfTokens) {
  const Outcome outcome = penstock(train(2) + Words{"--evaluate"});
  EXPECT_THAT(outcome.out, HasSubstr(" tokens/s"));
  EXPECT_THAT(outcome.out, HasSubstr("perplexity"));
  EXPECT_EQ(outcome.out.find("image"), std::string::npos) << outcome.out;
  EXPECT_THAT(penstock({"plan", model_, "--sequence", "16", "--memory", "1GiB"}).out, HasSubstr("tokens/s"));
  EXPECT_THAT(penstock({"show", model_, "--sequence", "16"}).out, HasSubstr("transformer.wte.weight"));
  EXPECT_THAT(penstock({"models"}).out, HasSubstr("gpt2-xl"));
}

TEST_F(TextCommand, ALlamaTrainsFromItsFolder) {
  const std::string llama = folder_.file("llama");
  std::filesystem::create_directory(llama);
  std::ofstream(llama + "/config.json") << kTinyLlama;
  const auto result = penstock_json({"train", llama, "--steps", "3", "--batch", "2", "--sequence", "20"});
  EXPECT_EQ(result["sequence"], 20);
  EXPECT_EQ(result["loss"].size(), 3U);
}

TEST_F(TextCommand, ResumesBitForBit) {
  const auto whole = penstock_json(train(6));
  penstock_json(train(3) + Words{"--checkpoint", folder_.file("ckpt")});
  const auto rest = penstock_json(train(6) + Words{"--resume", folder_.file("ckpt")});
  EXPECT_EQ(rest["weights_sha256"], whole["weights_sha256"]);
  Words shorter = train(6) + Words{"--resume", folder_.file("ckpt"), "--sequence", "16"};
  expect_refused(shorter, "sequences of 32 tokens, not 16");
}

TEST_F(TextCommand, AFolderOfTheHubIsWrittenAndRead) {
  const std::string saved = folder_.file("saved");
  std::filesystem::create_directory(saved);
  const auto trained = penstock_json(train(5) + Words{"--save", saved, "--evaluate"});
  EXPECT_EQ(nlohmann::json::parse(read_file(saved + "/config.json"))["vocab_size"], 256);
  EXPECT_EQ(nlohmann::json::parse(read_file(saved + "/config.json"))["architectures"][0], "GPT2LMHeadModel");
  // A batch that does not divide the samples: those that fill up the last one do not count.
  EXPECT_NEAR(penstock_json(evaluate(saved))["validation_loss"].get<double>(),
              trained["validation_loss"].get<double>(), 1e-5);

  // The same in two shards, with the hub's shorter names, a mask and the output layer that is tied.
  const SafetensorsFile whole = SafetensorsFile::open(saved + "/model.safetensors");
  const std::string shards = folder_.file("shards");
  std::filesystem::create_directory(shards);
  nlohmann::json index;
  const std::vector<SafetensorsEntry>& tensors = whole.tensors();
  for (const int shard : {0, 1}) {
    const std::string file = "model-" + std::to_string(shard) + ".safetensors";
    std::vector<SafetensorsSpec> specs;
    std::vector<std::vector<float>> values;
    for (std::size_t i = static_cast<std::size_t>(shard); i < tensors.size(); i += 2) {
      specs.push_back({tensors[i].name.substr(std::string("transformer.").size()), "F32", tensors[i].shape});
      values.emplace_back(static_cast<std::size_t>(tensors[i].elements));
      whole.read_float(tensors[i].name, values.back().data(), 0, tensors[i].elements);
    }
    if (shard == 1) {
      specs.push_back({"h.0.attn.bias", "F32", {1, 1, 2, 2}});
      values.emplace_back(4);
      specs.push_back({"lm_head.weight", "F32", {1}});
      values.emplace_back(1);
    }
    SafetensorsWriter writer(shards + "/" + file, specs);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      writer.append(values[i].data(), static_cast<std::int64_t>(values[i].size() * sizeof(float)));
      index["weight_map"][specs[i].name] = file;
    }
    writer.commit();
  }
  const std::string index_file = shards + "/model.safetensors.index.json";
  std::ofstream(index_file) << index.dump();
  EXPECT_EQ(penstock_json(evaluate(shards))["validation_loss"],
            penstock_json(evaluate(saved))["validation_loss"]);

  std::filesystem::rename(shards + "/model-1.safetensors", shards + "/away");
  expect_refused(evaluate(shards), "lacks the shard model-1.safetensors");
  std::filesystem::copy(shards + "/model-0.safetensors", shards + "/model-1.safetensors");
  expect_refused(evaluate(shards), "is in two shards");
  index["weight_map"]["wte.weight"] = "../secret";
  std::ofstream(index_file) << index.dump();
  expect_refused(evaluate(shards), "names no file of its folder");
  std::ofstream(index_file) << "{}";
  expect_refused(evaluate(shards), "no weight_map");
  std::filesystem::remove(index_file);
  expect_refused(evaluate(shards), "neither model.safetensors nor");
}

TEST_F(TextCommand, BadInputIsOneLine) {
  const std::string tokens = folder_.file("tokens.bin");
  const std::vector<std::uint16_t> values(400, 7);
  const auto write = [&](std::size_t bytes) {
    std::ofstream(tokens, std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(bytes));
  };
  const Words run{"train", model_, "--steps", "1", "--batch", "1", "--data", "tokens:" + tokens};
  write(799);
  expect_refused(run, "799 bytes, which are no whole number of uint16 tokens");
  write(800);
  expect_refused(run + Words{"--sequence", "33"}, "sequences of 1 to 32 tokens, not 33");
  expect_refused(run + Words{"--vocabulary", "7"}, "has token 7 at");
  expect_refused({"train", model_, "--steps", "1", "--data", "fashion-mnist"}, "is no text");
  expect_refused({"train", "lenet", "--steps", "1", "--data", "tokens:" + tokens}, "network for images");
  expect_refused({"train", "lenet", "--steps", "1", "--sequence", "8"}, "has no sequence");
  expect_refused({"show", "lenet", "--sequence", "8"}, "has no sequence");
  expect_refused({"train", model_, "--steps", "1", "--image-size", "8"}, "takes text");
  expect_refused({"show", model_, "--image-size", "8"}, "takes text");
  expect_refused({"train", folder_.file("none.json"), "--steps", "1"}, "none.json");
  std::filesystem::create_directory(folder_.file("empty"));
  expect_refused({"train", folder_.file("empty"), "--steps", "1"}, "has no config.json");
  expect_refused({"train", "gpt3", "--steps", "1"}, "gpt2");
  std::ofstream(model_) << R"({"model_type": "gpt2", "activation_function": "relu"})";
  expect_refused(run, "activation_function is \"relu\", which is not supported");
  std::ofstream(model_) << R"({"model_type": "gpt2", "n_layer": 2000000000})";
  expect_refused(run, "n_layer is 2000000000, which is not supported");
  std::ofstream(model_) << R"({"model_type": "mamba"})";
  expect_refused(run, "model_type is \"mamba\", which is not supported");
}

/// The bytes behind the prompt.
std::string generated(const Words& arguments) {
  const Outcome outcome = penstock(arguments);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.out;
}

TEST_F(TextCommand, GeneratesWhatItHasLearnt) {
  const std::string weights = folder_.file("weights.safetensors");
  penstock_json(train(150) + Words{"--save", weights});
  const Words run{"generate", model_, "--init", weights, "--prompt", "the quick ", "--tokens", "20"};
  EXPECT_EQ(generated(run + Words{"--temperature", "0"}), "the quick brown fox jumps over\n");
  EXPECT_EQ(generated(run + Words{"--top-k", "1"}), generated(run + Words{"--temperature", "0"}));
  const Words warm = run + Words{"--temperature", "3"};
  EXPECT_EQ(generated(warm + Words{"--seed", "4"}), generated(warm + Words{"--seed", "4"}));
  EXPECT_NE(generated(warm + Words{"--seed", "4"}), generated(warm + Words{"--seed", "5"}));
  EXPECT_EQ(generated({"generate", model_, "--init", weights, "--prompt-tokens", "113,117", "--tokens", "3",
                       "--temperature", "0"}),
            "105,99,107\n");
  expect_refused(run + Words{"--tokens", "30"}, "too long");
  expect_refused({"generate", model_, "--prompt", "a"}, "which weights");
  expect_refused({"generate", model_, "--init", weights}, "--prompt");
  expect_refused({"generate", model_, "--init", weights, "--prompt-tokens", "256"}, "token 256");
  expect_refused({"generate", "lenet", "--init", weights, "--prompt", "a"}, "for images");
}

/// Apart, because sanitizers take memory too.
class BudgetTextCommand : public TextCommand {};

TEST_F(BudgetTextCommand, GeneratesTheSame) {
  const std::string weights = folder_.file("weights.safetensors");
  penstock_json(train(20) + Words{"--save", weights});
  const Words run{"generate",   model_,     "--init", weights,         "--prompt",
                  "the quick ", "--tokens", "20",     "--temperature", "0"};
  EXPECT_EQ(generated(run + Words{"--memory", "96MiB", "--policy", "lms"}), generated(run));
}

}  // namespace
}  // namespace penstock::testing
