#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "ir/program.h"
#include "ir/text_attrs.h"

namespace penstock::ir {

struct NoAttrs {
  bool operator==(const NoAttrs&) const = default;
};

/// Which of the graph's inputs or outputs an op brings in or out.
struct PortAttrs {
  std::int32_t port = 0;
  bool operator==(const PortAttrs&) const = default;
};

/// One entry per spatial axis. Padding may differ at the two ends.
struct ConvAttrs {
  std::vector<std::int64_t> stride, dilation, padding_begin, padding_end;
  std::vector<std::int64_t> output_padding;  ///< conv_transpose only
  std::int64_t groups = 1;
  bool relu = false;  ///< y = max(0, conv(x)); the backward ops take dy already masked
  bool operator==(const ConvAttrs&) const = default;
};
struct LinearAttrs {
  bool relu = false;       ///< as ConvAttrs::relu
  bool turned = false;     ///< weights [K, M]
  std::int64_t begin = 0;  ///< of linear_backward_weights: first row of dw; how many is dw's shape
  bool operator==(const LinearAttrs&) const = default;
};
struct MatmulAttrs {
  bool transpose_a = false, transpose_b = false;  ///< of the last two axes
  float scale = 1;
  bool operator==(const MatmulAttrs&) const = default;
};
struct NormAttrs {
  float epsilon = 1e-5F;
  bool relu = false;       ///< ReLU fused behind (and behind the addition)
  bool add = false;        ///< a residual input is added before the ReLU
  bool mask = false;       ///< training: the ReLU's mask is an output
  std::int64_t count = 0;  ///< of batch_norm_backward_data: elements per channel of the whole batch
  float ceiling = 0;       ///< of the ReLU, if not 0: what is larger becomes this, as in ReLU6
  bool silu = false;       ///< SiLU fused behind, in place of a ReLU; its gradient makes the norm again
  bool operator==(const NormAttrs&) const = default;
};
/// running = (1 - momentum) * running + momentum * batch; the variance with count / (count - 1), as PyTorch
/// does.
struct StatisticsAttrs {
  float momentum = 0.1F;
  std::int64_t count = 0;  ///< elements per channel
  bool operator==(const StatisticsAttrs&) const = default;
};
/// Elements per channel of each slice.
struct CombineAttrs {
  std::vector<std::int64_t> counts;
  bool operator==(const CombineAttrs&) const = default;
};
enum class Activation : std::uint8_t { relu, leaky_relu, gelu, sigmoid, tanh };
const char* activation_name(Activation function);
struct ActivationAttrs {
  Activation function = Activation::relu;
  float alpha = 0.01F;  ///< slope of leaky_relu
  bool operator==(const ActivationAttrs&) const = default;
};
struct PoolAttrs {
  std::vector<std::int64_t> kernel, stride, padding_begin, padding_end;
  bool count_include_pad = true;  ///< average pooling
  bool operator==(const PoolAttrs&) const = default;
};
/// y = x / (k + alpha / size * sum of x^2 over `size` channels) ^ beta
struct LrnAttrs {
  std::int64_t size = 5;
  float alpha = 1e-4F, beta = 0.75F, k = 1;
  bool operator==(const LrnAttrs&) const = default;
};
struct DropoutAttrs {
  float probability = 0.5F;
  std::uint32_t key = 0;          ///< which dropout of the network; part of the random key
  std::int64_t first_sample = 0;  ///< of a slice: the place of its first sample in the batch
  bool operator==(const DropoutAttrs&) const = default;
};
/// Of a loss: places that its mean is over; 0: as many as it sees. A slice knows those of the whole batch.
struct MeanAttrs {
  std::int64_t count = 0;
  bool operator==(const MeanAttrs&) const = default;
};
struct AxisAttrs {
  std::int64_t axis = 1;
  bool operator==(const AxisAttrs&) const = default;
};
struct PadAttrs {
  std::vector<std::int64_t> begin, end;  ///< one entry per axis of the tensor
  float value = 0;
  bool operator==(const PadAttrs&) const = default;
};
struct UpsampleAttrs {
  std::vector<std::int64_t> factor;  ///< one entry per spatial axis
  bool bilinear = false;             ///< linear along each axis; otherwise nearest
  bool operator==(const UpsampleAttrs&) const = default;
};
struct TransposeAttrs {
  std::vector<std::int64_t> order;
  bool operator==(const TransposeAttrs&) const = default;
};
/// `begin`: the update is of dp's elements only, which lie in p from there on; m and v have dp's shape.
/// The gradient is dp times `gradient_scale` and, if `clipped`, times the last input, which is one number.
struct SgdAttrs {
  float momentum = 0, weight_decay = 0;
  bool nesterov = false;
  std::int64_t begin = 0;
  float gradient_scale = 1;
  bool clipped = false;
  bool operator==(const SgdAttrs&) const = default;
};
struct AdamAttrs {
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F, weight_decay = 0;
  bool decoupled = false;  ///< AdamW
  std::int64_t begin = 0;
  float gradient_scale = 1;
  bool clipped = false;
  /// m and v are kept in bfloat16, rounded up or down by chance, drawn from (seed, step, key, element).
  bool bf16_moments = false;
  std::uint32_t key = 0;  ///< which parameter; 0 where nothing is drawn
  bool operator==(const AdamAttrs&) const = default;
};
/// How ranks average an array, by slices of rank_slice(): all get all of it, or each gets its own slice and
/// (all_gather) what became of it is brought together again.
enum class ExchangeKind : std::uint8_t { all_reduce, reduce_scatter, all_gather };
const char* exchange_name(ExchangeKind kind);
struct ExchangeAttrs {
  std::int32_t bucket = 0;  ///< a start and its wait have the same; no other pair of the step has
  ExchangeKind kind = ExchangeKind::all_reduce;
  std::int32_t rank = 0, ranks = 1;
  /// Of gather_wait: where in each parameter the gathered elements belong, in its memory; the rest stays.
  std::vector<std::int64_t> begins, counts;
  bool operator==(const ExchangeAttrs&) const = default;
};
struct SliceAttrs {
  std::int64_t begin = 0;  ///< in elements; how many is the output's shape
  bool operator==(const SliceAttrs&) const = default;
};

struct PointwiseAttrs {
  Program program;
  bool operator==(const PointwiseAttrs&) const = default;
};
enum class Reduction : std::uint8_t { sum, mean, largest, smallest, product };
const char* reduction_name(Reduction function);
struct ReduceAttrs {
  Reduction function = Reduction::sum;
  std::vector<std::int64_t> axes;  ///< ascending
  bool operator==(const ReduceAttrs&) const = default;
};
/// One entry per axis: element i of the result is element begin + i * step, and the output's shape says how
/// many there are. A negative step walks backwards.
struct StridedAttrs {
  std::vector<std::int64_t> begin, step;
  bool operator==(const StridedAttrs&) const = default;
};

/// As PyTorch's cross entropy of log-probabilities: the mean over places that count, weighted by class.
struct NllAttrs {
  float smoothing = 0;          ///< this share of the loss is spread over all classes
  std::int32_t ignored = -100;  ///< a place with this label, or a negative one, does not count
  bool operator==(const NllAttrs&) const = default;
};

/// What parametrises an op: one of the structs above, immutable, NoAttrs unless said otherwise. Copies share
/// it. The structs that it may hold are listed in attrs.cpp, and all that is generated for each of them is
/// compiled there only, because every file that handles ops would otherwise compile it again.
class Attrs {
 public:
  Attrs() = default;
  /// Converts, so that ops can be written as lists: {kind, phase, name, inputs, outputs, ConvAttrs{...}}.
  template <typename T>
  requires(!std::is_same_v<T, Attrs>) Attrs(T attrs);

  /// Null if it holds another struct.
  template <typename T>
  const T* get_if() const {
    return static_cast<const T*>(find(typeid(T)));
  }
  /// Throws InternalError if it holds another struct.
  template <typename T>
  const T& get() const {
    return *static_cast<const T*>(find_or_throw(typeid(T)));
  }
  const std::type_info& type() const;
  bool operator==(const Attrs& other) const;

  /// One struct of attributes, whichever it is.
  struct Holder {
    virtual ~Holder() = default;
    virtual const std::type_info& type() const = 0;
    virtual const void* value() const = 0;
    virtual bool equals(const Holder& other) const = 0;  ///< of the same type
    virtual std::string text() const = 0;
  };

 private:
  friend std::string attrs_text(const Attrs& attrs);

  const void* find(const std::type_info& type) const;
  const void* find_or_throw(const std::type_info& type) const;
  const Holder& held() const;

  std::shared_ptr<const Holder> held_;  ///< null: NoAttrs
};

/// "stride 2, padding 1, groups 32"; empty for NoAttrs. Equal attributes have equal texts: kernels are cached
/// by it.
std::string attrs_text(const Attrs& attrs);

}  // namespace penstock::ir
