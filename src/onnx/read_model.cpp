#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "onnx/model.h"

namespace penstock::onnx {
namespace {

namespace fs = std::filesystem;

/// More elements than this cannot be meant, and byte counts of such a tensor could overflow.
constexpr std::int64_t kMaxElements = 1'000'000'000'000'000;
constexpr std::size_t kMaxNodes = 1'000'000;

/// Reads the messages of an ONNX file. Field numbers are those of onnx.proto; fields that it does not know
/// are passed over, so that files of later versions are read too.
class Parser {
 public:
  explicit Parser(const std::string& path) : file_(path) {}

  Model read() {
    model_.path = file_.path();
    bool has_graph = false;
    for_each({0, file_.size()}, [&](const Field& field) {
      if (field.number == 7) {
        if (has_graph) fail("it has two graphs");
        has_graph = true;
        read_graph(bytes(field));
      } else if (field.number == 8) {
        read_opset(bytes(field));
      }
    });
    if (!has_graph) fail("it has no graph");
    return std::move(model_);
  }

  Model read_tensor_only() {
    model_.path = file_.path();
    model_.initializers.push_back(read_tensor({0, file_.size()}));
    return std::move(model_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(fmt::format("{} is damaged or no ONNX file: {}", file_.path(), what));
  }
  [[noreturn]] void fail_tensor(const TensorInfo& tensor, const std::string& what) const {
    throw UserError(fmt::format("{}: tensor '{}' {}", file_.path(), printable(tensor.name), what));
  }

  template <typename F>
  void for_each(const Range& message, const F& use) {
    FieldReader reader(file_, message);
    for (Field field; reader.next(field);) use(field);
  }
  const Range& bytes(const Field& field) const {
    if (field.kind != Field::Kind::bytes) fail(fmt::format("field {} is no message", field.number));
    return field.range;
  }
  std::string text(const Field& field) { return read_text(file_, field); }

  void read_opset(const Range& message) {
    std::string domain;
    std::int64_t version = 0;
    for_each(message, [&](const Field& field) {
      if (field.number == 1) domain = text(field);
      if (field.number == 2) version = field.integer();
    });
    model_.opsets[domain == "ai.onnx" ? "" : domain] = version;
  }

  void read_graph(const Range& message) {
    for_each(message, [&](const Field& field) {
      switch (field.number) {
        case 1:
          if (model_.nodes.size() >= kMaxNodes) fail("it has too many nodes");
          model_.nodes.push_back(read_node(bytes(field)));
          break;
        case 2:
          model_.graph_name = text(field);
          break;
        case 5:
          if (model_.initializers.size() >= kMaxNodes) fail("it has too many tensors");
          model_.initializers.push_back(read_tensor(bytes(field)));
          break;
        case 11:
          model_.inputs.push_back(read_value(bytes(field)));
          break;
        case 12:
          model_.outputs.push_back(read_value(bytes(field)));
          break;
        case 15:
          fail("sparse tensors are not supported");
        default:
          break;
      }
    });
  }

  Node read_node(const Range& message) {
    Node node;
    for_each(message, [&](const Field& field) {
      if (field.number == 1) node.inputs.push_back(text(field));
      if (field.number == 2) node.outputs.push_back(text(field));
      if (field.number == 3) node.name = text(field);
      if (field.number == 4) node.op_type = text(field);
      if (field.number == 5) node.attributes.push_back(read_attribute(bytes(field)));
      if (field.number == 7) node.domain = text(field);
    });
    if (node.domain == "ai.onnx") node.domain.clear();
    return node;
  }

  Attribute read_attribute(const Range& message) {
    Attribute attribute;
    for_each(message, [&](const Field& field) {
      switch (field.number) {
        case 1:
          attribute.name = text(field);
          break;
        case 2: {
          std::vector<float> one;
          append_floats(file_, field, one);
          if (!one.empty()) attribute.f = one.back();
          break;
        }
        case 3:
          attribute.i = field.integer();
          break;
        case 4:
          attribute.s = text(field);
          break;
        case 5:
          attribute.tensor = std::make_shared<TensorInfo>(read_tensor(bytes(field)));
          break;
        case 6:
        case 11:
          // What is in it is not read: no op that takes a graph is supported, so its depth does not matter.
          attribute.has_graph = true;
          break;
        case 7:
          append_floats(file_, field, attribute.floats);
          break;
        case 8:
          append_integers(file_, field, attribute.ints);
          break;
        case 9:
          attribute.strings.push_back(text(field));
          break;
        default:
          break;
      }
    });
    return attribute;
  }

  ValueInfo read_value(const Range& message) {
    ValueInfo value;
    for_each(message, [&](const Field& field) {
      if (field.number == 1) value.name = text(field);
      if (field.number != 2) return;
      for_each(bytes(field), [&](const Field& type) {
        if (type.number != 1) return;
        value.is_tensor = true;
        for_each(bytes(type), [&](const Field& part) {
          if (part.number == 1) value.type = static_cast<ElementType>(part.integer());
          if (part.number == 2) read_dims(bytes(part), value);
        });
      });
    });
    return value;
  }

  void read_dims(const Range& message, ValueInfo& value) {
    value.has_shape = true;
    for_each(message, [&](const Field& field) {
      if (field.number != 1) return;
      Dim dim;
      for_each(bytes(field), [&](const Field& part) {
        if (part.number == 1) dim.value = part.integer();
        if (part.number == 2) dim.name = text(part);
      });
      if (dim.value < 1) dim.value = -1;
      value.dims.push_back(std::move(dim));
      if (value.dims.size() > 64) fail("a value has too many extents");
    });
  }

  /// Where the elements are, as the fields of the tensor say it.
  struct Storage {
    std::vector<Range> floats, doubles;
    std::vector<Range> raw;
    std::vector<std::int64_t> integers;
    std::map<std::string, std::string> external;
    bool is_external = false, has_text = false;
  };

  TensorInfo read_tensor(const Range& message) {
    TensorInfo tensor;
    Storage storage;
    const auto add_part = [&](const Field& field, std::vector<Range>& parts) {
      if (static_cast<std::int64_t>(parts.size()) >= kMaxListed) fail("a tensor has too many parts");
      parts.push_back(field.range);
    };
    for_each(message, [&](const Field& field) {
      switch (field.number) {
        case 1:
          append_integers(file_, field, tensor.dims);
          break;
        case 2:
          tensor.type = static_cast<ElementType>(field.integer());
          break;
        case 3:
          fail("tensors in segments are not supported");
        case 4:
          if (field.kind != Field::Kind::varint) add_part(field, storage.floats);
          break;
        case 5:
        case 7:
        case 11:
          append_integers(file_, field, storage.integers);
          break;
        case 6:
          storage.has_text = true;
          break;
        case 8:
          tensor.name = text(field);
          break;
        case 9:
          storage.raw.push_back(bytes(field));
          break;
        case 10:
          if (field.kind != Field::Kind::varint) add_part(field, storage.doubles);
          break;
        case 13:
          read_entry(bytes(field), storage.external);
          break;
        case 14:
          storage.is_external = field.integer() == 1;
          break;
        default:
          break;
      }
    });
    count_elements(tensor);
    place(tensor, storage);
    return tensor;
  }

  void read_entry(const Range& message, std::map<std::string, std::string>& entries) {
    std::string key, value;
    for_each(message, [&](const Field& field) {
      if (field.number == 1) key = text(field);
      if (field.number == 2) value = text(field);
    });
    entries[key] = value;
  }

  void count_elements(TensorInfo& tensor) const {
    tensor.elements = 1;
    if (tensor.dims.size() > 64) fail_tensor(tensor, "has too many extents");
    for (const std::int64_t extent : tensor.dims) {
      if (extent < 0) fail_tensor(tensor, fmt::format("has an extent of {}", extent));
      if (extent > 0 && tensor.elements > kMaxElements / extent) fail_tensor(tensor, "is too large");
      tensor.elements *= extent;
    }
  }

  /// Finds the elements in the file and checks that all are there.
  void place(TensorInfo& tensor, const Storage& storage) {
    if (storage.has_text || tensor.type == ElementType::text) return;  // refused where it is used
    tensor.part_element_bytes = element_bytes(tensor.type);
    if (tensor.part_element_bytes == 0) return;
    if (storage.is_external) return place_external(tensor, storage.external);
    if (!storage.raw.empty()) {
      tensor.parts = {storage.raw.back()};
    } else if (!storage.floats.empty()) {
      if (tensor.type != ElementType::f32) fail_tensor(tensor, "lists floats and is of another type");
      tensor.parts = storage.floats;
    } else if (!storage.doubles.empty()) {
      if (tensor.type != ElementType::f64) fail_tensor(tensor, "lists doubles and is of another type");
      tensor.parts = storage.doubles;
    } else if (is_floating(tensor.type) && !storage.integers.empty()) {
      fail_tensor(tensor,
                  "lists half-precision numbers one by one, which is not supported; save it as raw data");
    } else if (tensor.elements > 0) {
      tensor.listed = true;
      tensor.integers = storage.integers;
      if (static_cast<std::int64_t>(tensor.integers.size()) != tensor.elements) {
        fail_tensor(tensor, fmt::format("has {} elements of {}", tensor.integers.size(), tensor.elements));
      }
      if (tensor.type == ElementType::s32) {
        for (std::int64_t& value : tensor.integers) value = static_cast<std::int32_t>(value);
      }
      return;
    }
    check_bytes(tensor);
  }

  void check_bytes(const TensorInfo& tensor) const {
    std::int64_t bytes = 0;
    for (const Range& part : tensor.parts) {
      if (part.size() % tensor.part_element_bytes != 0) fail_tensor(tensor, "is cut within an element");
      bytes += part.size();
    }
    if (bytes != tensor.elements * tensor.part_element_bytes) {
      fail_tensor(tensor, fmt::format("has {} bytes where its {} elements need {}", bytes, tensor.elements,
                                      tensor.elements * tensor.part_element_bytes));
    }
  }

  void place_external(TensorInfo& tensor, const std::map<std::string, std::string>& entries) {
    const auto number = [&](const char* key, std::int64_t usual) {
      const auto found = entries.find(key);
      if (found == entries.end() || found->second.empty()) return usual;
      const std::string& digits = found->second;
      if (digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos)
        fail_tensor(tensor, fmt::format("has external data at {} '{}'", key, printable(digits)));
      return static_cast<std::int64_t>(std::stoll(digits));
    };
    const auto location = entries.find("location");
    if (location == entries.end()) fail_tensor(tensor, "has external data and does not say where");
    tensor.external = external_path(tensor, location->second);
    const InputFile data(tensor.external);
    const std::int64_t need = tensor.elements * tensor.part_element_bytes;
    const std::int64_t offset = number("offset", 0), length = number("length", need);
    if (length != need)
      fail_tensor(tensor, fmt::format("has {} bytes of external data where it needs {}", length, need));
    if (offset > data.size_bytes() || need > data.size_bytes() - offset) {
      fail_tensor(tensor, fmt::format("has its data beyond the end of {}, which has {} bytes",
                                      printable(location->second), data.size_bytes()));
    }
    tensor.parts = {{offset, offset + need}};
  }

  /// Nothing outside of the model's folder is read, whatever the file says.
  std::string external_path(const TensorInfo& tensor, const std::string& location) const {
    const fs::path relative(location);
    const bool inside =
        !location.empty() && relative.is_relative() && location.find('\0') == std::string::npos &&
        std::none_of(relative.begin(), relative.end(), [](const fs::path& part) { return part == ".."; });
    const auto refuse = [&] {
      fail_tensor(tensor,
                  fmt::format("has its data in '{}', outside of the folder of the model, which is not read",
                              printable(location)));
    };
    if (!inside) refuse();
    std::error_code error;
    const fs::path folder = fs::canonical(fs::absolute(file_.path()).parent_path(), error);
    if (error) fail_tensor(tensor, "is in a folder that cannot be read");
    const fs::path path = fs::canonical(folder / relative, error);
    if (error)
      fail_tensor(tensor, fmt::format("has its data in '{}', which is missing", printable(location)));
    const auto [end, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
    if (end != folder.end()) refuse();
    return path.string();
  }

  ByteFile file_;
  Model model_;
};

}  // namespace

Model read_model(const std::string& path) {
  return Parser(path).read();
}

Model read_tensor_file(const std::string& path) {
  return Parser(path).read_tensor_only();
}

}  // namespace penstock::onnx
