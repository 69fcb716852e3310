#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/error.h"
#include "ir/rotary.h"
#include "kernels/reference/families.h"

namespace penstock::kernels::reference {
namespace {

const std::int32_t* tokens_of(const KernelArgs& args, std::size_t input) {
  return static_cast<const std::int32_t*>(args.inputs[input]);
}

/// f(x) and its slope.
struct Gated {
  double value, slope;
};

Gated gate_of(ir::Gate function, double x) {
  switch (function) {
    case ir::Gate::silu: {
      const double sigmoid = 1 / (1 + std::exp(-x));
      return {x * sigmoid, sigmoid * (1 + x * (1 - sigmoid))};
    }
    case ir::Gate::gelu: {
      const double share = 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
      const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
      return {x * share, share + x * density};
    }
    case ir::Gate::gelu_tanh: {
      const double root = std::sqrt(2 / std::numbers::pi);
      const double tanh = std::tanh(root * (x + 0.044715 * x * x * x));
      const double inner = root * (1 + 3 * 0.044715 * x * x);
      return {0.5 * x * (1 + tanh), 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * inner};
    }
  }
  throw InternalError("no such gate");
}

/// The output layer and what its logits are.
struct OutputLayer {
  explicit OutputLayer(const Described& d)
      : tokens(d.in[0].elements(0, d.in[0].rank() - 1)), width(d.in[1][1]), vocabulary(d.in[1][0]) {}
  std::int64_t tokens, width, vocabulary;

  std::vector<double> logits(const KernelArgs& args, std::int64_t token) const {
    std::vector<double> made;
    for (std::int64_t v = 0; v < vocabulary; ++v) {
      double sum = 0;
      for (std::int64_t i = 0; i < width; ++i) {
        sum += static_cast<double>(floats_in(args, 0)[token * width + i]) * floats_in(args, 1)[v * width + i];
      }
      made.push_back(sum);
    }
    return made;
  }
  double counted(const KernelArgs& args) const {
    const std::int32_t* labels = tokens_of(args, 2);
    return std::max<double>(1, static_cast<double>(std::count_if(labels, labels + tokens,
                                                                 [](std::int32_t l) { return l >= 0; })));
  }
};

}  // namespace

Body embedding(const Described& d) {
  return [tokens = d.in[0], vocabulary = d.in[1][0], width = d.in[1][1]](const KernelArgs& args) {
    const std::int64_t sequence = tokens[tokens.rank() - 1];
    for (std::int64_t i = 0; i < tokens.elements(); ++i) {
      const std::int32_t token = tokens_of(args, 0)[i];
      require(token < vocabulary, "a token is not in the vocabulary");
      for (std::int64_t k = 0; k < width; ++k) {
        float value = token < 0 ? 0.0F : floats_in(args, 1)[token * width + k];
        if (args.inputs.size() > 2) value += floats_in(args, 2)[i % sequence * width + k];
        floats_out(args, 0)[i * width + k] = value;
      }
    }
  };
}

Body embedding_backward(const Described& d) {
  return [count = d.in[0].elements(), rows = d.out[0][0], width = d.out[0][1],
          begin = d.attrs<ir::EmbeddingAttrs>().begin](const KernelArgs& args) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t k = 0; k < width; ++k) {
        double sum = args.inputs.size() > 2 ? floats_in(args, 2)[row * width + k] : 0.0F;
        for (std::int64_t i = 0; i < count; ++i) {
          if (tokens_of(args, 0)[i] == begin + row) sum += floats_in(args, 1)[i * width + k];
        }
        floats_out(args, 0)[row * width + k] = static_cast<float>(sum);
      }
    }
  };
}

Body position_backward(const Described& d) {
  return [dy = d.in[0], positions = d.out[0][0], width = d.out[0][1]](const KernelArgs& args) {
    const std::int64_t sequence = dy[dy.rank() - 2];
    for (std::int64_t i = 0; i < positions * width; ++i) {
      double sum = 0;
      if (i < sequence * width) {
        for (std::int64_t at = i; at < dy.elements(); at += sequence * width) sum += floats_in(args, 0)[at];
      }
      floats_out(args, 0)[i] = static_cast<float>(sum);
    }
  };
}

Body rotary(const Described& d) {
  return [x = d.in[0], attrs = d.attrs<ir::RotaryAttrs>()](const KernelArgs& args) {
    const std::int64_t width = x[x.rank() - 1];
    const std::int64_t sequence = x[x.rank() - 2];
    const std::int64_t pairs = attrs.rotated / 2;
    for (std::int64_t head = 0; head < x.elements(); head += attrs.head_width) {
      const auto position = static_cast<double>(head / width % sequence);
      const float* from = floats_in(args, 0) + head;
      float* to = floats_out(args, 0) + head;
      for (std::int64_t pair = 0; pair < pairs; ++pair) {
        const double angle = position * ir::rotary_frequency(attrs, pair) * (attrs.inverse ? -1 : 1);
        const std::int64_t first = attrs.interleaved ? 2 * pair : pair;
        const std::int64_t second = attrs.interleaved ? first + 1 : first + pairs;
        const double a = from[first];
        const double b = from[second];
        to[first] = static_cast<float>(a * std::cos(angle) - b * std::sin(angle));
        to[second] = static_cast<float>(b * std::cos(angle) + a * std::sin(angle));
      }
      for (std::int64_t i = attrs.rotated; i < attrs.head_width; ++i) to[i] = from[i];
    }
  };
}

Body gate(const Described& d) {
  return [count = d.in[0].elements(), function = d.attrs<ir::GateAttrs>().function](const KernelArgs& args) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double other = args.inputs.size() > 1 ? floats_in(args, 1)[i] : 1.0F;
      floats_out(args, 0)[i] = static_cast<float>(gate_of(function, floats_in(args, 0)[i]).value * other);
    }
  };
}

Body gate_backward(const Described& d) {
  return [count = d.in[0].elements(), function = d.attrs<ir::GateAttrs>().function](const KernelArgs& args) {
    const bool gated = args.outputs.size() > 1;
    for (std::int64_t i = 0; i < count; ++i) {
      const Gated at = gate_of(function, floats_in(args, 0)[i]);
      const double other = gated ? floats_in(args, 1)[i] : 1.0F;
      const double dy = floats_in(args, gated ? 2 : 1)[i];
      floats_out(args, 0)[i] = static_cast<float>(dy * other * at.slope);
      if (gated) floats_out(args, 1)[i] = static_cast<float>(dy * at.value);
    }
  };
}

Body linear_cross_entropy(const Described& d) {
  return [layer = OutputLayer(d),
          smoothing = static_cast<double>(d.attrs<ir::OutputLossAttrs>().smoothing)](const KernelArgs& args) {
    double loss = 0;
    for (std::int64_t token = 0; token < layer.tokens; ++token) {
      const std::vector<double> logits = layer.logits(args, token);
      const double largest = *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      double total = 0;
      for (const double logit : logits) {
        sum += std::exp(logit - largest);
        total += logit;
      }
      const double logsum = largest + std::log(sum);
      floats_out(args, 1)[token] = static_cast<float>(logsum);
      const std::int32_t label = tokens_of(args, 2)[token];
      require(label < layer.vocabulary, "a label is not in the vocabulary");
      if (label < 0) continue;
      loss += logsum - (1 - smoothing) * logits[static_cast<std::size_t>(label)] -
              smoothing * total / static_cast<double>(layer.vocabulary);
    }
    floats_out(args, 0)[0] = static_cast<float>(loss / layer.counted(args));
  };
}

Body linear_cross_entropy_backward(const Described& d) {
  return [layer = OutputLayer(d), rows = d.out[1][0],
          attrs = d.attrs<ir::OutputLossAttrs>()](const KernelArgs& args) {
    const auto smoothing = static_cast<double>(attrs.smoothing);
    std::vector<double> dx(static_cast<std::size_t>(layer.tokens * layer.width), 0);
    std::vector<double> dw(static_cast<std::size_t>(rows * layer.width), 0);
    if (args.inputs.size() > 4) std::copy_n(floats_in(args, 4), dx.size(), dx.begin());
    for (std::int64_t token = 0; token < layer.tokens; ++token) {
      const std::int32_t label = tokens_of(args, 2)[token];
      if (label < 0) continue;
      const std::vector<double> logits = layer.logits(args, token);
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t v = attrs.begin + row;
        double gradient = std::exp(logits[static_cast<std::size_t>(v)] - floats_in(args, 3)[token]) -
                          smoothing / static_cast<double>(layer.vocabulary);
        if (v == label) gradient -= 1 - smoothing;
        gradient /= layer.counted(args);
        for (std::int64_t i = 0; i < layer.width; ++i) {
          dx[static_cast<std::size_t>(token * layer.width + i)] +=
              gradient * floats_in(args, 1)[v * layer.width + i];
          dw[static_cast<std::size_t>(row * layer.width + i)] +=
              gradient * floats_in(args, 0)[token * layer.width + i];
        }
      }
    }
    std::transform(dx.begin(), dx.end(), floats_out(args, 0), [](double v) { return static_cast<float>(v); });
    std::transform(dw.begin(), dw.end(), floats_out(args, 1), [](double v) { return static_cast<float>(v); });
  };
}

Body sum_squares(const Described& d) {
  return [in = d.in](const KernelArgs& args) {
    double sum = 0;
    for (std::size_t t = 0; t < in.size(); ++t) {
      for (std::int64_t i = 0; i < in[t].elements(); ++i)
        sum += static_cast<double>(floats_in(args, t)[i]) * floats_in(args, t)[i];
    }
    floats_out(args, 0)[0] = static_cast<float>(sum);
  };
}

Body clip_scale(const Described& d) {
  return [attrs = d.attrs<ir::ClipAttrs>()](const KernelArgs& args) {
    double sum = 0;
    for (std::size_t i = 0; i < args.inputs.size(); ++i) sum += floats_in(args, i)[0];
    const double norm = std::sqrt(attrs.weight * sum);
    const double scale = attrs.norm / (norm + 1e-6);
    floats_out(args, 0)[0] = static_cast<float>(scale > 1 ? 1 : scale);
    floats_out(args, 1)[0] = static_cast<float>(norm);
  };
}

}  // namespace penstock::kernels::reference
