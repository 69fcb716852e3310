#include "onnx/importer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <queue>

#include "base/error.h"
#include "base/text.h"
#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

constexpr std::int64_t kOldestOpset = 6;

/// All constants of a network that are not tensors of the file come to at most this many elements.
constexpr std::int64_t kMostMade = 1 << 24;

/// Integers beyond this have no float of their own, and programs compute in floats.
constexpr std::int64_t kLargestExact = 1 << 24;

Extents at_least_one(const Extents& dims) {
  return dims.empty() ? Extents{1} : dims;
}

/// What holds elements of a type in the network.
DType held_as(ElementType type) {
  if (is_floating(type)) return DType::f32;
  return type == ElementType::boolean ? DType::u8 : DType::s32;
}

ElementType type_of(DType dtype) {
  return dtype == DType::f32 ? ElementType::f32
                             : (dtype == DType::s32 ? ElementType::s64 : ElementType::boolean);
}

}  // namespace

Importer::Importer(const Model& model, const ImportOptions& options)
    : model_(model),
      options_(options),
      net_(printable(model.graph_name.empty() ? "onnx" : model.graph_name)) {}

void Importer::fail(const std::string& what) const {
  if (node_ == nullptr) throw UserError(fmt::format("{}: {}", model_.path, what));
  throw UserError(fmt::format("{}: {} {}", model_.path, node_text(*node_), what));
}

Network Importer::run() {
  if (opset() < kOldestOpset)
    fail(fmt::format("it has opset {}; {} and newer are supported", opset(), kOldestOpset));
  for (const TensorInfo& tensor : model_.initializers) {
    Entry made;
    made.initializer = &tensor;
    made.dims = tensor.dims;
    made.type = tensor.type;
    if (!entries_.emplace(tensor.name, std::move(made)).second)
      fail(fmt::format("two tensors are called '{}'", printable(tensor.name)));
  }
  add_inputs();
  for (const std::size_t i : order()) add_node(model_.nodes[i]);
  node_ = nullptr;
  add_outputs();
  Network network = net_.finish();
  for (const std::string& pattern : options_.freeze) network = network.freeze(pattern);
  return network;
}

void Importer::add_inputs() {
  // The first free extent, or the first extent of the first input, is the batch.
  for (const ValueInfo& input : model_.inputs) {
    const auto known = entries_.find(input.name);
    if (known != entries_.end() || input.dims.empty()) continue;
    if (file_batch_ == 0) {
      batch_name_ = input.dims[0].name;
      file_batch_ = input.dims[0].value;
    }
  }
  batch_ = options_.batch > 0 ? options_.batch : std::max<std::int64_t>(file_batch_, 1);
  for (const ValueInfo& input : model_.inputs) {
    if (entries_.contains(input.name)) continue;
    const auto known = options_.known.find(input.name);
    if (known != options_.known.end()) {
      add_known(input, known->second);
    } else {
      add_input(input);
    }
  }
}

void Importer::add_known(const ValueInfo& input, const KnownInput& known) {
  Constant constant{input.type, known.dims, {}, {}};
  if (constant.floating()) {
    constant.floats = known.values;
  } else {
    for (const double value : known.values) constant.integers.push_back(static_cast<std::int64_t>(value));
  }
  if (constant.size() != product_of(known.dims))
    fail(fmt::format("input '{}' is given with another number of elements", printable(input.name)));
  Entry made;
  made.dims = known.dims;
  made.type = input.type;
  made.constant = std::make_shared<Constant>(std::move(constant));
  entries_.emplace(input.name, std::move(made));
}

void Importer::add_input(const ValueInfo& input) {
  const std::string name = printable(input.name);
  if (!input.is_tensor || !input.has_shape) fail(fmt::format("input '{}' has no shape", name));
  Extents shape;
  for (std::size_t i = 0; i < input.dims.size(); ++i) {
    const Dim& dim = input.dims[i];
    const auto given = options_.extents.find(dim.name);
    if (dim.value < 0 && given != options_.extents.end()) {
      shape.push_back(given->second);
    } else if ((i == 0 && (dim.value < 0 || dim.value == file_batch_)) ||
               (dim.value < 0 && !dim.name.empty() && dim.name == batch_name_)) {
      shape.push_back(batch_);
    } else if (dim.value > 0) {
      shape.push_back(dim.value);
    } else if (dim.value < 0 && options_.free_extent > 0) {
      shape.push_back(options_.free_extent);
    } else {
      fail(fmt::format("extent {} of input '{}' is free ('{}'); say what it is", i, name,
                       printable(dim.name)));
    }
  }
  DType dtype = DType::f32;
  if (input.type == ElementType::s64 || input.type == ElementType::s32) {
    dtype = DType::s32;
  } else if (input.type == ElementType::boolean || input.type == ElementType::u8) {
    dtype = DType::u8;
  } else if (!is_floating(input.type)) {
    fail(fmt::format("input '{}' is of {}, which is not supported", name, type_name(input.type)));
  }
  Entry made;
  made.value = net_.input(input.name, dtype, at_least_one(shape));
  made.dims = shape;
  made.type = input.type;
  entries_.emplace(input.name, std::move(made));
}

std::vector<std::size_t> Importer::order() const {
  const std::vector<Node>& nodes = model_.nodes;
  std::unordered_map<std::string, std::size_t> makers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].outputs) {
      if (output.empty()) continue;
      if (entries_.contains(output) || !makers.emplace(output, i).second) {
        throw UserError(fmt::format("{}: two nodes make '{}', one of them {}", model_.path, printable(output),
                                    node_text(nodes[i])));
      }
    }
  }
  // Only what the outputs need.
  std::vector<bool> needed(nodes.size(), false);
  std::vector<std::size_t> open;
  const auto need = [&](const std::string& name) {
    const auto maker = makers.find(name);
    if (maker == makers.end() || needed[maker->second]) return;
    needed[maker->second] = true;
    open.push_back(maker->second);
  };
  for (const ValueInfo& output : model_.outputs) need(output.name);
  while (!open.empty()) {
    const std::size_t i = open.back();
    open.pop_back();
    for (const std::string& input : nodes[i].inputs) need(input);
  }
  // Each node once its inputs are there, else in the order of the file.
  std::vector<std::size_t> missing(nodes.size(), 0);
  std::vector<std::vector<std::size_t>> readers(nodes.size());
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  std::size_t count = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!needed[i]) continue;
    ++count;
    for (const std::string& input : nodes[i].inputs) {
      const auto maker = makers.find(input);
      if (maker == makers.end()) continue;
      readers[maker->second].push_back(i);
      ++missing[i];
    }
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<std::size_t> sorted;
  while (!ready.empty()) {
    const std::size_t i = ready.top();
    ready.pop();
    sorted.push_back(i);
    for (const std::size_t reader : readers[i]) {
      if (--missing[reader] == 0) ready.push(reader);
    }
  }
  if (sorted.size() != count) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (needed[i] && missing[i] > 0) {
        throw UserError(fmt::format("{}: {} needs what it makes itself: the graph has a cycle", model_.path,
                                    node_text(nodes[i])));
      }
    }
  }
  return sorted;
}

void Importer::add_node(const Node& node) {
  node_ = &node;
  for (const std::string& input : node.inputs) {
    if (!input.empty()) entry(input);
  }
  if (fold_node(node)) return;
  const OpFunction function = node.domain.empty() ? find_op(node.op_type) : nullptr;
  if (function == nullptr) {
    fail(fmt::format("is not supported{}; supported are {}",
                     node.domain.empty() ? "" : fmt::format(" (domain '{}')", printable(node.domain)),
                     fmt::join(supported_ops(), ", ")));
  }
  function(*this);
}

bool Importer::fold_node(const Node& node) {
  // The shape of anything is known; what it holds need not be.
  if (node.op_type == "Shape" && node.domain.empty() && !node.inputs.empty()) {
    const Extents& dims = shape(0);
    const auto rank = static_cast<std::int64_t>(dims.size());
    const auto place = [&](std::int64_t given) {
      return std::clamp<std::int64_t>(given < 0 ? given + rank : given, 0, rank);
    };
    const std::int64_t begin = place(integer("start", 0)), end = place(integer("end", rank));
    set_constant(
        0, make_shape_constant(begin < end ? Extents(dims.begin() + begin, dims.begin() + end) : Extents{}));
    return true;
  }
  std::vector<const Constant*> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Constant* constant = has(i) ? known(i) : nullptr;
    if (has(i) && constant == nullptr) return false;
    inputs.push_back(constant);
  }
  if (inputs.empty()) return false;
  std::optional<std::vector<Constant>> made = fold(model_, node, inputs);
  if (!made) return false;
  for (std::size_t i = 0; i < made->size(); ++i) set_constant(i, std::move((*made)[i]));
  return true;
}

Importer::Entry& Importer::entry(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail(fmt::format("reads '{}', which nothing makes", printable(name)));
  return found->second;
}

Importer::Entry& Importer::entry(std::size_t input) {
  if (!has(input)) fail(fmt::format("has no input {}", input));
  return entry(node_->inputs[input]);
}

bool Importer::has(std::size_t input) const {
  return input < node_->inputs.size() && !node_->inputs[input].empty();
}

Constant Importer::read(const TensorInfo& tensor) const {
  if (element_bytes(tensor.type) == 0) {
    fail(fmt::format("reads tensor '{}' of {}, which is not supported", printable(tensor.name),
                     type_name(tensor.type)));
  }
  if (tensor.elements > kMaxListed)
    fail(fmt::format("reads tensor '{}', which is too large for a constant", printable(tensor.name)));
  Constant constant{tensor.type, tensor.dims, {}, {}};
  if (constant.floating()) {
    std::vector<float> values(static_cast<std::size_t>(tensor.elements));
    read_floats(model_, tensor, 0, tensor.elements, values.data());
    constant.floats.assign(values.begin(), values.end());
  } else {
    constant.integers = read_integers(model_, tensor);
  }
  return constant;
}

const Constant* Importer::known(Entry& entry) {
  if (entry.constant != nullptr) return entry.constant.get();
  // A floating-point tensor of the file is to be trained: it is no constant unless an op insists on it.
  if (entry.initializer == nullptr || entry.value != Value{} || is_floating(entry.initializer->type))
    return nullptr;
  entry.constant = std::make_shared<Constant>(read(*entry.initializer));
  return entry.constant.get();
}

const Constant* Importer::known(std::size_t input) {
  return known(entry(input));
}

const Constant& Importer::constant(std::size_t input) {
  Entry& found = entry(input);
  if (const Constant* constant = known(found)) return *constant;
  if (found.initializer == nullptr) {
    fail(fmt::format("has an input {} ('{}') that must be known before the step and is not", input,
                     printable(node_->inputs[input])));
  }
  found.constant = std::make_shared<Constant>(read(*found.initializer));
  return *found.constant;
}

std::vector<std::int64_t> Importer::integers(std::size_t input) {
  const Constant& found = constant(input);
  if (found.floating()) fail(fmt::format("has an input {} that is not of integers", input));
  return found.integers;
}

double Importer::number(std::size_t input) {
  const Constant& found = constant(input);
  if (found.size() != 1) fail(fmt::format("has an input {} that is not one number", input));
  return found.number(0);
}

std::optional<float> Importer::scalar(std::size_t input) {
  const Constant* found = known(input);
  if (found == nullptr || found->size() != 1) return std::nullopt;
  return static_cast<float>(found->number(0));
}

const Extents& Importer::shape(std::size_t input) {
  return entry(input).dims;
}

ElementType Importer::type(std::size_t input) {
  return entry(input).type;
}

bool Importer::is_initializer(std::size_t input) {
  return entry(input).initializer != nullptr;
}

Value Importer::real_value(std::size_t input) {
  const Value x = value(input);
  return net_.dtype(x) == DType::f32 ? x : net_.cast(x, DType::f32);
}

Value Importer::value(std::size_t input) {
  Entry& found = entry(input);
  return value(node_->inputs[input], found, false);
}

Value Importer::state(std::size_t input, bool buffer) {
  Entry& found = entry(input);
  return value(node_->inputs[input], found, buffer);
}

Value Importer::value(const std::string& name, Entry& entry, bool buffer) {
  if (entry.value != Value{}) return entry.value;
  if (entry.initializer != nullptr && is_floating(entry.initializer->type)) {
    const Extents dims = at_least_one(entry.dims);
    entry.value = buffer ? net_.buffer(name, dims) : net_.parameter(name, dims);
    return entry.value;
  }
  const Constant* constant = known(entry);
  if (constant == nullptr)
    fail(fmt::format("reads tensor '{}', which is too large for a constant", printable(name)));
  entry.value = buffer_of(*constant, name);
  if (constant->floating()) return entry.value;
  if (entry.type != ElementType::boolean) {
    for (const std::int64_t one : constant->integers) {
      if (one > kLargestExact || one < -kLargestExact)
        fail(fmt::format("computes with {}; integers beyond {} are not supported", one, kLargestExact));
    }
  }
  entry.value = net_.cast(entry.value, held_as(entry.type));
  return entry.value;
}

Value Importer::table(const Extents& dims, const std::vector<double>& values) {
  const std::string& name = node_->outputs.empty() ? node_->name : node_->outputs[0];
  return buffer_of({ElementType::f32, dims, {}, values}, name + ".table");
}

Value Importer::index_table(const Extents& dims, const std::vector<std::int64_t>& values) {
  return net_.cast(table(dims, {values.begin(), values.end()}), DType::s32);
}

Value Importer::buffer_of(const Constant& constant, const std::string& name) {
  made_elements_ += constant.size();
  if (made_elements_ > kMostMade)
    fail("needs more numbers that are known before the step than are supported");
  std::string free = name;
  for (int i = 2; made_.contains(free); ++i) free = fmt::format("{}.{}", name, i);
  std::vector<float>& values = made_[free];
  for (std::size_t i = 0; i < static_cast<std::size_t>(constant.size()); ++i)
    values.push_back(static_cast<float>(constant.number(i)));
  return net_.buffer(free, at_least_one(constant.dims));
}

std::int64_t Importer::integer(const char* attribute, std::int64_t usual) const {
  const Attribute* found = node_->find(attribute);
  return found == nullptr ? usual : found->i;
}

float Importer::real(const char* attribute, float usual) const {
  const Attribute* found = node_->find(attribute);
  return found == nullptr ? usual : found->f;
}

std::string Importer::text(const char* attribute, const std::string& usual) const {
  const Attribute* found = node_->find(attribute);
  return found == nullptr ? usual : printable(found->s);
}

std::vector<std::int64_t> Importer::integers(const char* attribute) const {
  const Attribute* found = node_->find(attribute);
  return found == nullptr ? std::vector<std::int64_t>{} : found->ints;
}

std::size_t Importer::axis(std::int64_t given, std::size_t rank) const {
  const std::int64_t positive = given < 0 ? given + static_cast<std::int64_t>(rank) : given;
  if (positive < 0 || positive >= static_cast<std::int64_t>(rank))
    fail(fmt::format("has an axis {} where there are {}", given, rank));
  return static_cast<std::size_t>(positive);
}

std::string Importer::layer() {
  const std::string name = !node_->name.empty()      ? node_->name
                           : !node_->outputs.empty() ? node_->outputs[0]
                                                     : node_->op_type;
  std::string free = name;
  for (int i = 2; !layers_.insert(free).second; ++i) free = fmt::format("{}.{}", name, i);
  return free;
}

bool Importer::wants(std::size_t output) const {
  return output < node_->outputs.size() && !node_->outputs[output].empty();
}

void Importer::set(std::size_t output, Value value) {
  set(output, value, net_.shape(value));
}

void Importer::set(std::size_t output, Value value, Extents dims, ElementType type) {
  if (!wants(output)) return;
  if (net_.shape(value) != at_least_one(dims)) value = net_.reshape(value, at_least_one(dims));
  if (type == ElementType::none) type = type_of(net_.dtype(value));
  if (net_.dtype(value) != held_as(type)) value = net_.cast(value, held_as(type));
  Entry made;
  made.value = value;
  made.dims = std::move(dims);
  made.type = type;
  entries_.emplace(node_->outputs[output], std::move(made));
}

void Importer::set_constant(std::size_t output, Constant constant) {
  if (!wants(output)) return;
  Entry made;
  made.dims = constant.dims;
  made.type = constant.type;
  made.constant = std::make_shared<Constant>(std::move(constant));
  entries_.emplace(node_->outputs[output], std::move(made));
}

Value Importer::output_value(const std::string& name) {
  Entry& found = entry(name);
  return value(name, found, false);
}

void Importer::add_outputs() {
  if (model_.outputs.empty()) fail("it has no output");
  const std::string first = model_.outputs[0].name;
  if (options_.loss == "cross_entropy") {
    // The loss takes the softmax itself.
    const auto softmax = std::find_if(model_.nodes.begin(), model_.nodes.end(), [&](const Node& node) {
      return node.op_type == "Softmax" && !node.outputs.empty() && node.outputs[0] == first;
    });
    const Value logits = output_value(softmax != model_.nodes.end() ? softmax->inputs.at(0) : first);
    Extents labels = net_.shape(logits);
    if (labels.size() < 2)
      fail(fmt::format("output '{}' is no logits [batch, classes, ...]", printable(first)));
    labels.erase(labels.begin() + 1);
    net_.classifier(logits, net_.input("labels", DType::s32, labels));
  } else if (options_.loss == "output") {
    net_.loss(output_value(first));
  } else if (!options_.loss.empty()) {
    const Value prediction = output_value(first);
    net_.loss(net_.element_loss(options_.loss, prediction,
                                net_.input("targets", DType::f32, net_.shape(prediction))));
  }
  const bool trains = !options_.loss.empty();
  for (std::size_t i = 0; i < model_.outputs.size(); ++i) {
    const std::string& name = model_.outputs[i].name;
    if (i == 0 && options_.loss == "output") continue;
    if (trains && (name == "loss" || name == "logits" || name == "correct")) continue;
    net_.output(name, output_value(name), trains);
    const Entry& made = entry(name);
    outputs_[name] = {made.dims, static_cast<int>(made.type)};
  }
}

}  // namespace penstock::onnx
