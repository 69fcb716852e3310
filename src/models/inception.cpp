#include <fmt/format.h>

#include "models/families.h"

namespace penstock::models {

namespace {

/// One convolution of a branch: kernel height and width; "same" padding with stride 1, none with stride 2.
struct Step {
  std::int64_t channels;
  std::int64_t height = 1, width = 1;
  std::int64_t stride = 1;
  bool same = true;
};

const PoolOptions kReduce{{3}, {2}};

/// Inception-v4 with timm's names: features.0 ... features.21, last_linear.
class InceptionV4 {
 public:
  explicit InceptionV4(const Instance& instance) : instance_(instance), begun_(instance.begin()) {}

  Network build() {
    Value x = stem();
    for (int i = 6; i < 10; ++i) x = block_a(path(i), x);
    x = reduction_a(path(10), x);
    for (int i = 11; i < 18; ++i) x = block_b(path(i), x);
    x = reduction_b(path(18), x);
    for (int i = 19; i < 22; ++i) x = block_c(path(i), x);
    x = net_.flatten(net_.global_avg_pool(x, "global_pool"));
    x = net_.dropout(x, instance_.dropout_probability(0.2F), "head_drop");
    net_.classifier(net_.linear("last_linear", x, instance_.classes), begun_.labels);
    return net_.finish();
  }

 private:
  static std::string path(int index) { return fmt::format("features.{}", index); }

  Value unit(const std::string& name, Value x, const Step& step) {
    const Extents padding = step.same ? Extents{step.height / 2, step.width / 2} : Extents{0};
    x = net_.conv(
        name + ".conv", x, instance_.channels(step.channels),
        {.kernel = {step.height, step.width}, .stride = {step.stride}, .padding = padding, .bias = false});
    return net_.relu(net_.batch_norm(name + ".bn", x, 1e-3F));
  }

  Value branch(const std::string& name, Value x, const std::vector<Step>& steps, int first = 0) {
    for (const Step& step : steps) x = unit(fmt::format("{}.{}", name, first++), x, step);
    return x;
  }

  Value pooled_branch(const std::string& name, Value x, std::int64_t channels) {
    x = net_.avg_pool(x, {.kernel = {3}, .stride = {1}, .padding = {1}, .count_include_pad = false},
                      name + ".0");
    return unit(name + ".1", x, {channels});
  }

  Value stem() {
    Value x = unit(path(0), begun_.images, {32, 3, 3, 2, false});
    x = unit(path(1), x, {32, 3, 3, 1, false});
    x = unit(path(2), x, {64, 3, 3});
    x = net_.concat(
        {net_.max_pool(x, kReduce, path(3) + ".maxpool"), unit(path(3) + ".conv", x, {96, 3, 3, 2, false})},
        1, path(3));
    const Value a = branch(path(4) + ".branch0", x, {{64}, {96, 3, 3, 1, false}});
    const Value b = branch(path(4) + ".branch1", x, {{64}, {64, 1, 7}, {64, 7, 1}, {96, 3, 3, 1, false}});
    x = net_.concat({a, b}, 1, path(4));
    const Value reduced = unit(path(5) + ".conv", x, {192, 3, 3, 2, false});
    return net_.concat({reduced, net_.max_pool(x, kReduce, path(5) + ".maxpool")}, 1, path(5));
  }

  Value block_a(const std::string& name, Value x) {
    const Value a = unit(name + ".branch0", x, {96});
    const Value b = branch(name + ".branch1", x, {{64}, {96, 3, 3}});
    const Value c = branch(name + ".branch2", x, {{64}, {96, 3, 3}, {96, 3, 3}});
    const Value d = pooled_branch(name + ".branch3", x, 96);
    return net_.concat({a, b, c, d}, 1, name);
  }

  Value reduction_a(const std::string& name, Value x) {
    const Value a = unit(name + ".branch0", x, {384, 3, 3, 2, false});
    const Value b = branch(name + ".branch1", x, {{192}, {224, 3, 3}, {256, 3, 3, 2, false}});
    return net_.concat({a, b, net_.max_pool(x, kReduce, name + ".branch2")}, 1, name);
  }

  Value block_b(const std::string& name, Value x) {
    const Value a = unit(name + ".branch0", x, {384});
    const Value b = branch(name + ".branch1", x, {{192}, {224, 1, 7}, {256, 7, 1}});
    const Value c = branch(name + ".branch2", x, {{192}, {192, 7, 1}, {224, 1, 7}, {224, 7, 1}, {256, 1, 7}});
    const Value d = pooled_branch(name + ".branch3", x, 128);
    return net_.concat({a, b, c, d}, 1, name);
  }

  Value reduction_b(const std::string& name, Value x) {
    const Value a = branch(name + ".branch0", x, {{192}, {192, 3, 3, 2, false}});
    const Value b = branch(name + ".branch1", x, {{256}, {256, 1, 7}, {320, 7, 1}, {320, 3, 3, 2, false}});
    return net_.concat({a, b, net_.max_pool(x, kReduce, name + ".branch2")}, 1, name);
  }

  Value block_c(const std::string& name, Value x) {
    const Value a = unit(name + ".branch0", x, {256});
    const Value b = unit(name + ".branch1_0", x, {384});
    const Value b1 = unit(name + ".branch1_1a", b, {256, 1, 3});
    const Value b2 = unit(name + ".branch1_1b", b, {256, 3, 1});
    Value c = unit(name + ".branch2_0", x, {384});
    c = unit(name + ".branch2_1", c, {448, 3, 1});
    c = unit(name + ".branch2_2", c, {512, 1, 3});
    const Value c1 = unit(name + ".branch2_3a", c, {256, 1, 3});
    const Value c2 = unit(name + ".branch2_3b", c, {256, 3, 1});
    const Value d = pooled_branch(name + ".branch3", x, 256);
    return net_.concat({a, b1, b2, c1, c2, d}, 1, name);
  }

  const Instance& instance_;
  Instance::Begun begun_;
  NetworkBuilder& net_ = begun_.net;
};

}  // namespace

Network build_inception_v4(const Instance& instance) {
  return InceptionV4(instance).build();
}

}  // namespace penstock::models
