#pragma once

// Networks: one of the built-in models, or described layer by layer with NetworkBuilder. A network is
// described once; training and evaluation are made of the same description. Whatever does not fit throws
// penstock::UserError (penstock/errors.h) that names the layer and the shapes.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock {

enum class DType : std::uint8_t { f32, s32, u8 };

/// Extents of a value, outermost first: [N, C, H, W]; or one number for each spatial axis of a layer, where a
/// single one stands for all.
using Extents = std::vector<std::int64_t>;

/// A value of a network under construction; only its builder knows what it stands for. Without an id it is
/// none: what a layer can go without.
struct Value {
  std::int32_t id = -1;
  bool operator==(const Value&) const = default;
};

/// The first values of a parameter or buffer.
struct Init {
  enum class Kind : std::uint8_t { constant, uniform, normal };
  Kind kind = Kind::constant;
  float value = 0;  ///< the constant; the bound b of uniform(-b, b); the deviation of normal(0, d)

  static Init constant(float value) { return {Kind::constant, value}; }
  static Init uniform(float bound) { return {Kind::uniform, bound}; }
  static Init normal(float deviation) { return {Kind::normal, deviation}; }
};

struct ConvOptions {
  Extents kernel{3};  ///< of layers that make their own weight
  Extents stride{1};
  Extents padding{0};     ///< at the begin of each axis
  Extents padding_end{};  ///< at the end of each axis; empty: as at the begin
  Extents dilation{1};
  Extents output_padding{0};  ///< conv_transpose only
  std::int64_t groups = 1;
  bool bias = true;  ///< of layers that make their own
};

struct PoolOptions {
  Extents kernel{2};
  Extents stride{2};
  Extents padding{0};             ///< at the begin of each axis
  Extents padding_end{};          ///< at the end of each axis; empty: as at the begin
  bool count_include_pad = true;  ///< average pooling
};

/// y = x / (k + alpha / size * sum of x^2 over `size` channels) ^ beta
struct LrnOptions {
  std::int64_t size = 5;
  float alpha = 1e-4F, beta = 0.75F, k = 1;
};

struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;  ///< of the last two axes
  float scale = 1;
};

struct AttentionOptions {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;  ///< heads of keys and values, which several heads of queries share; 0: as many
  bool causal = false;        ///< query i sees keys 0 to i
  float scale = 0;            ///< of the scores; 0: 1 / sqrt(a head's width)
  float dropout = 0;          ///< of the probabilities
};

/// Pairs of a head's first `rotated` elements are turned by position times a frequency of the pair: base ^
/// (-2 pair / rotated), divided by `factor`. Where low_turns and high_turns differ, only pairs that turn
/// fewer times than that within `original_length` are divided (Llama 3's rule).
struct RotaryOptions {
  std::int64_t head_width = 0;
  std::int64_t rotated = 0;  ///< 0: all of the head
  float base = 10000;
  bool interleaved = false;  ///< pairs lie side by side, else half of `rotated` apart
  float factor = 1;
  float low_turns = 0, high_turns = 0;
  std::int64_t original_length = 0;
};

enum class Reduction : std::uint8_t { sum, mean, largest, smallest, product };

/// As PyTorch's cross entropy: the mean over the places that count, weighted by class.
struct CrossEntropyOptions {
  float smoothing = 0;          ///< this share of the loss is spread over all classes
  std::int32_t ignored = -100;  ///< a place with this label, or a negative one, does not count
  Value class_weights;          ///< [K] or none
};

enum class Gate : std::uint8_t { silu, gelu, gelu_tanh };

/// What a built-in model is made for. 0 stands for the model's own default.
struct ModelOptions {
  std::int64_t batch = 1;
  std::int64_t channels = 0;
  std::int64_t image_size = 0;  ///< for volumes the edge of the cube
  std::int64_t classes = 0;
  double width = 1;     ///< multiplies every channel count inside the network: small instances for tests
  bool dropout = true;  ///< false: leaves dropout layers out
  std::int64_t sequence = 0;  ///< of text: tokens of a sample; 0: as many as the model has positions
};

struct ModelInfo {
  std::string name;
  std::string description;
  std::int64_t channels = 3, image_size = 224, classes = 1000;  ///< defaults
  bool per_pixel = false;                                       ///< labels are one a pixel (voxel)
  bool volumetric = false;                                      ///< images are [N, C, D, H, W]
};

/// All built-in models, in the order they are listed to the user; the family `resnet-N` is one entry.
std::vector<ModelInfo> list_models();

/// The entry of `name` ("resnet-1001" finds the family's, with its own name). UserError suggests what was
/// meant; for a depth that cannot be reached it names the nearest two.
ModelInfo find_model(const std::string& name);

/// A value that is given to a network or read back.
struct PortInfo {
  std::string name;
  DType dtype = DType::f32;
  Extents shape;
  bool evaluation_only = false;  ///< of an output: training neither computes nor holds it
};

/// State of a network: a parameter, or a buffer such as the running statistics of a batch norm.
struct ParameterInfo {
  std::string name;
  Extents shape;
  bool trained = true;  ///< false: a buffer, or a parameter that is frozen
};

/// A network for one batch size: an immutable description, cheap to copy, shared among threads.
class Network {
 public:
  /// A built-in model with inputs `images` [batch, C, ...] and `labels`, outputs `loss` and, in evaluation,
  /// `logits` and `correct` (how many labels the largest logit names). UserError if an option is out of range
  /// or the image too small for the network; it then names the smallest that works.
  static Network model(const std::string& name, const ModelOptions& options = {});

  const std::string& name() const;
  std::vector<PortInfo> inputs() const;
  std::vector<PortInfo> outputs() const;
  std::vector<ParameterInfo> parameters() const;
  /// Whether it says what training makes smaller.
  bool has_loss() const;

  /// The same network with the parameters whose names match frozen: no gradient, no optimizer state, no
  /// backward work that only they would need. In `pattern` * stands for any letters. UserError if none
  /// matches.
  Network freeze(const std::string& pattern) const;

  struct Impl;  ///< the library's own
  explicit Network(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Describes a network layer by layer. Names are PyTorch's module paths: conv("layer1.0.conv1", ...) makes
/// the parameter "layer1.0.conv1.weight". Layers without parameters take a name too; left empty it is made of
/// the input's ("layer1.0.bn1.relu"). One thread.
class NetworkBuilder {
 public:
  explicit NetworkBuilder(std::string name);
  ~NetworkBuilder();
  NetworkBuilder(NetworkBuilder&&) noexcept;
  NetworkBuilder& operator=(NetworkBuilder&&) noexcept;

  /// Ends the network; the builder is empty afterwards.
  Network finish();

  const Extents& shape(Value value) const;
  DType dtype(Value value) const;
  std::string name(Value value) const;

  /// While it lives, names of layers and parameters begin with its own: Scope block(net, "layer1.0").
  class Scope {
   public:
    Scope(NetworkBuilder& builder, const std::string& name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    NetworkBuilder& builder_;
    std::string outer_;
  };

  /// Layers that are given no name are called after this from now on ("encoder.3.linear"), not after their
  /// input; empty: after their input again. For networks of another system, which has names of its own.
  void name_layers(const std::string& base);

  // What enters and leaves.

  /// A value that the caller gives in each step.
  Value input(const std::string& name, DType dtype, const Extents& shape);
  /// State that is trained. Used twice, it is tied: its gradients are summed.
  Value parameter(const std::string& name, const Extents& shape, Init init = {});
  /// State that is not trained.
  Value buffer(const std::string& name, const Extents& shape, Init init = {});
  /// Overrides how a parameter or buffer is first filled (by default PyTorch's own rules for the layer).
  void init(const std::string& parameter, Init init);
  /// Lets the caller read a value back, or only in evaluation.
  void output(const std::string& name, Value value, bool evaluation_only = false);
  /// Says which number training makes smaller; it is an output called `loss`.
  void loss(Value value);
  /// What a classifier ends with: the cross-entropy as the loss; in evaluation outputs `logits` and
  /// `correct`.
  void classifier(Value logits, Value labels);

  // Sums of products. The first form of each makes its parameters, the second takes them.

  /// x [N, C, 1 to 3 spatial extents] -> [N, channels, ...]
  Value conv(const std::string& name, Value x, std::int64_t channels, const ConvOptions& options);
  /// weight [channels, C / groups, kernel...], bias [channels] or none
  Value conv(Value x, Value weight, Value bias, const ConvOptions& options, const std::string& name = {});
  Value conv_transpose(const std::string& name, Value x, std::int64_t channels, const ConvOptions& options);
  /// weight [C, channels / groups, kernel...], bias [channels] or none
  Value conv_transpose(Value x, Value weight, Value bias, const ConvOptions& options,
                       const std::string& name = {});
  /// x [..., K] -> [..., features]
  Value linear(const std::string& name, Value x, std::int64_t features, bool bias = true);
  /// weight [features, K] or, turned, [K, features]; bias [features] or none
  Value linear(Value x, Value weight, Value bias, bool turned = false, const std::string& name = {});
  /// a [..., M, K], b [..., K, N] -> [..., M, N]. Leading extents broadcast by NumPy's rule; a vector is a
  /// row of a or a column of b.
  Value matmul(Value a, Value b, const MatmulOptions& options = {}, const std::string& name = {});
  /// Adds a parameter [C] along axis 1.
  Value bias(const std::string& name, Value x);
  Value bias(Value x, Value bias, const std::string& name = {});

  // Normalisation.

  /// Over all axes but 1; keeps running statistics, which evaluation normalises by.
  Value batch_norm(const std::string& name, Value x, float epsilon = 1e-5F, float momentum = 0.1F);
  /// gamma, beta, running_mean, running_var [C]; the last two are buffers.
  Value batch_norm(Value x, Value gamma, Value beta, Value running_mean, Value running_var, float epsilon,
                   float momentum, const std::string& name = {});
  /// Over the last axis.
  Value layer_norm(const std::string& name, Value x, float epsilon = 1e-5F);
  Value layer_norm(Value x, Value gamma, Value beta, float epsilon, const std::string& name = {});
  /// A norm of x + z, and x + z itself.
  struct Normed {
    Value y, sum;
  };
  Normed add_layer_norm(Value x, Value z, Value gamma, Value beta, float epsilon = 1e-5F,
                        const std::string& name = {});
  /// x / sqrt(mean(x^2) + epsilon) * gamma over the last axis.
  Value rms_norm(const std::string& name, Value x, float epsilon = 1e-6F);
  Value rms_norm(Value x, Value gamma, float epsilon, const std::string& name = {});
  Normed add_rms_norm(Value x, Value z, Value gamma, float epsilon = 1e-6F, const std::string& name = {});
  /// Across channels.
  Value lrn(Value x, const LrnOptions& options = {}, const std::string& name = {});

  // Element by element.

  Value relu(Value x, const std::string& name = {});
  Value leaky_relu(Value x, float slope = 0.01F, const std::string& name = {});
  Value gelu(Value x, const std::string& name = {});
  Value sigmoid(Value x, const std::string& name = {});
  Value tanh(Value x, const std::string& name = {});
  /// In training: zero with the probability, otherwise divided by its complement. In evaluation: nothing.
  Value dropout(Value x, float probability, const std::string& name = {});
  Value add(Value a, Value b, const std::string& name = {});
  Value multiply(Value a, Value b, const std::string& name = {});
  Value softmax(Value x, std::int64_t axis = 1, const std::string& name = {});

  /// A function by its name in PyTorch or NumPy, of inputs of any type that broadcast by NumPy's rule:
  /// "silu", "hardswish", "relu6", "clip", "div", "pow_scalar", "where", "less", ... `parameters` are
  /// PyTorch's, in its order; what is left out has its default. Chains of functions become one pass over
  /// memory. A result of type u8 is 0 or 1, one of s32 is cut off towards 0.
  Value apply(const std::string& function, const std::vector<Value>& inputs,
              const std::vector<float>& parameters = {}, const std::string& name = {},
              DType type = DType::f32);
  /// The same values as another type.
  Value cast(Value x, DType type, const std::string& name = {});
  Value log_softmax(Value x, std::int64_t axis = 1, const std::string& name = {});
  /// Negative axes count from the end; no axes: all. They stay with extent 1 if `keep`. A product has no
  /// gradient.
  Value reduce(Reduction function, Value x, Extents axes, bool keep = false, const std::string& name = {});
  /// s32: the first place of the largest; the axis stays with extent 1.
  Value argmax(Value x, std::int64_t axis, const std::string& name = {});

  // Windows.

  Value max_pool(Value x, const PoolOptions& options, const std::string& name = {});
  Value avg_pool(Value x, const PoolOptions& options, const std::string& name = {});
  /// [N, C, ...] -> [N, C, 1...]
  Value global_avg_pool(Value x, const std::string& name = {});
  /// PyTorch's AdaptiveAvgPool: `size` values along each spatial axis, whatever the input's extents.
  Value adaptive_avg_pool(Value x, std::int64_t size, const std::string& name = {});
  /// Spatial extents times `factor`, by the nearest or by linear interpolation (align_corners = false).
  Value upsample(Value x, const Extents& factor, bool bilinear, const std::string& name = {});

  // Shapes.

  Value concat(const std::vector<Value>& values, std::int64_t axis = 1, const std::string& name = {});
  std::vector<Value> split(Value x, const Extents& sizes, std::int64_t axis = 1,
                           const std::string& name = {});
  /// begin, end: how many elements are added before and behind each axis.
  Value pad(Value x, const Extents& begin, const Extents& end, float value = 0, const std::string& name = {});
  /// begin, end: how many elements are taken away.
  Value crop(Value x, const Extents& begin, const Extents& end, const std::string& name = {});
  /// The same elements in row-major order; one extent may be -1 and is what is left for it.
  Value reshape(Value x, const Extents& shape, const std::string& name = {});
  /// [N, ...] -> [N, K]
  Value flatten(Value x, const std::string& name = {});
  /// Axis i of the result is axis order[i] of x.
  Value transpose(Value x, const Extents& order, const std::string& name = {});

  /// Repeated along axes of extent 1 or that are missing.
  Value expand(Value x, const Extents& shape, const std::string& name = {});
  /// Elements begin, begin + step, ... of an axis, `count` of them; a negative step walks backwards.
  Value slice(Value x, std::int64_t axis, std::int64_t begin, std::int64_t count, std::int64_t step = 1,
              const std::string& name = {});
  Value flip(Value x, std::int64_t axis, const std::string& name = {});
  /// Elements move by `shift` along the axis; those that fall off the end come in at the beginning.
  Value roll(Value x, std::int64_t axis, std::int64_t shift, const std::string& name = {});
  /// Rows of x along the axis, as `indices` (s32, any shape) name them; a negative one counts from the end.
  Value gather(Value x, Value indices, std::int64_t axis, const std::string& name = {});
  /// Joined along a new axis.
  Value stack(const std::vector<Value>& values, std::int64_t axis, const std::string& name = {});

  // What transformers are made of. B batch, S sequence, D a head's width.

  /// tokens s32 [..., S], weight [V, W], positions [P, W] or none -> [..., S, W]: the row of each token (of a
  /// negative one 0), plus that of its position.
  Value embedding(Value tokens, Value weight, Value positions = {}, const std::string& name = {});
  /// qkv [B, S, (heads + 2 kv_heads) D] -> [B, S, heads D]
  Value attention(Value qkv, const AttentionOptions& options, const std::string& name = {});
  /// q [B, S, heads D], k and v [B, T, kv_heads D], or q [B, heads, S, D], k and v [B, kv_heads, T, D] -> as
  /// q; mask [B or 1, heads or 1, S or 1, T] or none: f32 is added to the scores, u8 hides where it is 0.
  Value attention(Value q, Value k, Value v, Value mask, const AttentionOptions& options,
                  const std::string& name = {});
  /// Rotary positions: x [..., S, heads D].
  Value rotary(Value x, const RotaryOptions& options, const std::string& name = {});
  /// f(a), or f(a) times b.
  Value gate(Gate function, Value a, Value b = {}, const std::string& name = {});
  /// x [..., D], weight [V, D], labels s32 [...] -> [1]: the mean cross-entropy of x weight^T over the labels
  /// that are not negative, without ever holding all logits.
  Value linear_cross_entropy(Value x, Value weight, Value labels, float smoothing = 0,
                             const std::string& name = {});

  // Losses.

  /// logits [N, K, ...], labels s32 [N, ...] -> [1]: the mean; a place with a negative label adds nothing.
  Value cross_entropy(Value logits, Value labels, const std::string& name = {});
  /// The same with label smoothing, class weights and labels that do not count, over which the mean is not
  /// taken.
  Value weighted_cross_entropy(Value logits, Value labels, const CrossEntropyOptions& options,
                               const std::string& name = {});
  /// The mean over all elements of "mse", "l1", "smooth_l1" and "huber" (`width` of the round part),
  /// "bce_with_logits", "kl" (log-probabilities against probabilities, summed over each sample). -> [1]
  Value element_loss(const std::string& loss, Value prediction, Value target, float width = 1,
                     const std::string& name = {});
  /// s32 [1]: how many labels the largest logit names.
  Value count_correct(Value logits, Value labels, const std::string& name = {});

  struct Impl;  ///< the library's own

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
