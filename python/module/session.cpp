#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <penstock/session.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <span>

#include "bindings.h"
#include "engine.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock::python {
namespace {

using Array = nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>;
using Floats = nb::ndarray<nb::numpy, float>;

Extents shape_of(const Array& array) {
  Extents shape;
  for (std::size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<std::int64_t>(array.shape(i)));
  return shape;
}

bool is(const Array& array, nb::dlpack::dtype_code code, int bits) {
  return array.dtype().code == static_cast<std::uint8_t>(code) && array.dtype().bits == bits &&
         array.dtype().lanes == 1;
}

/// Inputs of a step, and the memory of those that had to be narrowed.
struct Given {
  Inputs inputs;
  std::list<std::vector<std::int32_t>> narrowed;
};

/// 64-bit labels, as PyTorch has them, in 32 bits.
const std::vector<std::int32_t>& narrow(const std::string& name, const Array& array, Given& given) {
  const std::span<const std::int64_t> values(static_cast<const std::int64_t*>(array.data()), array.size());
  std::vector<std::int32_t>& narrowed = given.narrowed.emplace_back();
  narrowed.reserve(values.size());
  for (const std::int64_t value : values) {
    if (value != static_cast<std::int32_t>(value))
      throw UserError("input '" + name + "' has " + std::to_string(value) + ", which 32 bits do not hold");
    narrowed.push_back(static_cast<std::int32_t>(value));
  }
  return narrowed;
}

InputArray input_of(const PortInfo& port, const Array& array, std::int64_t micro_batches, Given& given) {
  Extents wanted = port.shape;
  if (!wanted.empty()) wanted[0] *= micro_batches;
  if (const Extents shape = shape_of(array); shape != wanted) {
    throw UserError("input '" + port.name + "' has the shape " + shape_text(shape) + ", " +
                    (micro_batches > 1 ? "a step of " + std::to_string(micro_batches) + " micro-batches"
                                       : std::string("the network")) +
                    " takes " + shape_text(wanted));
  }
  if (port.dtype == DType::s32 && is(array, nb::dlpack::dtype_code::Int, 64))
    return narrow(port.name, array, given);
  const bool fits = port.dtype == DType::f32   ? is(array, nb::dlpack::dtype_code::Float, 32)
                    : port.dtype == DType::s32 ? is(array, nb::dlpack::dtype_code::Int, 32)
                                               : is(array, nb::dlpack::dtype_code::UInt, 8) ||
                                                     is(array, nb::dlpack::dtype_code::Bool, 8);
  if (!fits)
    throw UserError("input '" + port.name + "' is of another type; the network takes " +
                    dtype_name(port.dtype));
  return {port.dtype, array.data(), array.size()};
}

Given inputs_of(const Network& network, const std::map<std::string, Array>& arrays,
                std::int64_t micro_batches = 1) {
  Given given;
  const std::vector<PortInfo> ports = network.inputs();
  for (const auto& [name, array] : arrays) {
    const auto port =
        std::find_if(ports.begin(), ports.end(), [&](const PortInfo& p) { return p.name == name; });
    if (port == ports.end()) {
      std::string known;
      for (const PortInfo& each : ports) known += (known.empty() ? "" : ", ") + each.name;
      throw UserError("the network has no input '" + name + "'; it has " + known);
    }
    given.inputs[name] = input_of(*port, array, micro_batches, given);
  }
  return given;
}

template <typename Element>
nb::object array_of(std::unique_ptr<Element[]> values, const std::vector<std::int64_t>& shape) {
  const std::vector<std::size_t> extents(shape.begin(), shape.end());
  Element* data = values.release();
  const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<Element*>(p); });
  return nb::ndarray<nb::numpy, Element>(data, extents.size(), extents.data(), owner).cast();
}

template <typename Element>
nb::object array_of(const OutputArray& output) {
  auto values = std::make_unique<Element[]>(output.bytes.size() / sizeof(Element));
  std::memcpy(values.get(), output.bytes.data(), output.bytes.size());
  return array_of(std::move(values), output.shape);
}

nb::object array_of(const OutputArray& output) {
  if (output.dtype == DType::f32) return array_of<float>(output);
  if (output.dtype == DType::s32) return array_of<std::int32_t>(output);
  return array_of<std::uint8_t>(output);
}

/// Loss, outputs and times of a step; whatever Ctrl-C asked for comes after the step is complete.
nb::tuple result_of(const StepResult& result) {
  check_signals();
  nb::dict outputs;
  for (const auto& [name, output] : result.outputs) outputs[name.c_str()] = array_of(output);
  return nb::make_tuple(result.loss, outputs, result.stats, result.gradient_norm);
}

nb::tuple step(Engine& engine, const std::map<std::string, Array>& arrays) {
  const Given given = inputs_of(engine.session.network(), arrays, engine.accumulate);
  return result_of(engine.call([&](Session& session) { return session.step(given.inputs); }));
}

/// What writes an array's bytes is not looked at by the session, which else takes finite numbers only.
void let_all_numbers_in(const Network& network, Inputs& inputs) {
  for (const PortInfo& port : network.inputs()) {
    const auto given = inputs.find(port.name);
    if (given == inputs.end()) continue;
    InputArray& input = given->second;
    const std::size_t samples = port.shape.empty() ? 1 : static_cast<std::size_t>(port.shape[0]);
    const std::size_t bytes = input.elements * (input.dtype == DType::u8 ? 1 : 4) / samples;
    input.fill = [from = static_cast<const std::byte*>(input.data), bytes](const InputPart& part) {
      std::memcpy(part.to, from + static_cast<std::size_t>(part.first) * bytes,
                  static_cast<std::size_t>(part.count) * bytes);
    };
  }
}

nb::tuple run(Engine& engine, const std::map<std::string, Array>& arrays, bool any_numbers) {
  Given given = inputs_of(engine.session.network(), arrays);
  if (any_numbers) let_all_numbers_in(engine.session.network(), given.inputs);
  return result_of(engine.call([&](Session& session) { return session.run(given.inputs); }));
}

const char* kind_name(StateKind kind) {
  return kind == StateKind::parameter ? "parameter" : kind == StateKind::statistic ? "buffer" : "optimizer";
}

nb::object read(Engine& engine, const std::string& name, const std::vector<std::int64_t>& shape) {
  std::unique_ptr<float[]> values;
  engine.call([&](Session& session) {
    session.read(name, [&](std::span<const float> from) {
      values = std::make_unique<float[]>(from.size());
      std::copy(from.begin(), from.end(), values.get());
    });
  });
  return array_of(std::move(values), shape);
}

void write(Engine& engine, const std::string& name,
           const nb::ndarray<const float, nb::device::cpu, nb::c_contig>& values) {
  engine.call([&](Session& session) { session.write(name, {values.data(), values.size()}); });
}

void write_report(Engine& engine, const std::string& path, const std::string& trace_path,
                  const std::vector<double>& loss, const std::vector<double>& step_seconds,
                  const StepStats& typical, const std::string& command) {
  RunStory story;
  story.title = engine.session.network().name();
  const std::vector<PortInfo> ports = engine.session.network().inputs();
  if (!ports.empty() && !ports.front().shape.empty()) story.batch = ports.front().shape.front();
  story.command = command;
  story.loss = loss;
  story.step_seconds = step_seconds;
  story.typical = typical;
  engine.call([&](Session& session) {
    story.weights_sha256 = session.state_sha256();
    session.write_report(trace_path, path, story);
  });
}

}  // namespace

void bind_session(nb::module_& module) {
  nb::class_<Engine>(module, "Engine", "A session of the engine; penstock.Session is what programs use.")
      .def(
          "__init__",
          [](Engine* self, const Network& network, const Optimizer& optimizer,
             const SessionOptions& options) {
            {
              const nb::gil_scoped_release unlocked;
              new (self) Engine(network, optimizer, options);
            }
          },
          "network"_a, "optimizer"_a, "options"_a)
      .def("step", &step, "inputs"_a)
      .def("run", &run, "inputs"_a, "any_numbers"_a = false)
      .def_prop_rw(
          "learning_rate", [](Engine& e) { return e.call([](Session& s) { return s.learning_rate(); }); },
          [](Engine& e, double rate) { e.call([&](Session& s) { s.set_learning_rate(rate); }); })
      .def_prop_rw(
          "steps_done", [](Engine& e) { return e.call([](Session& s) { return s.steps_done(); }); },
          [](Engine& e, std::int64_t steps) { e.call([&](Session& s) { s.set_steps_done(steps); }); })
      .def("state",
           [](Engine& e) {
             nb::list list;
             for (const StateInfo& info : e.call([](Session& s) { return s.state(); }))
               list.append(nb::make_tuple(info.name, info.shape, kind_name(info.kind)));
             return list;
           })
      .def("read", &read, "name"_a, "shape"_a)
      .def("write", &write, "name"_a, "values"_a)
      .def("state_sha256", [](Engine& e) { return e.call([](Session& s) { return s.state_sha256(); }); })
      .def("save", [](Engine& e, const std::string& path) { e.call([&](Session& s) { s.save(path); }); })
      .def("load", [](Engine& e, const std::string& path) { e.call([&](Session& s) { s.load(path); }); })
      .def("save_checkpoint",
           [](Engine& e, const std::string& dir, const std::map<std::string, std::string>& info, int keep) {
             e.call([&](Session& s) { s.save_checkpoint(dir, info, keep); });
           })
      .def("load_checkpoint",
           [](Engine& e, const std::string& dir, bool with_optimizer) {
             e.call([&](Session& s) { s.load_checkpoint(dir, with_optimizer); });
           })
      .def("plan", [](Engine& e) { return e.call([](Session& s) { return s.plan(); }); })
      .def("save_plan",
           [](Engine& e, const std::string& path) { e.call([&](Session& s) { s.save_plan(path); }); })
      .def("explain",
           [](Engine& e, const std::string& name) {
             return e.call([&](Session& s) { return s.explain(name); });
           })
      .def("why_slower", [](Engine& e) { return e.call([](Session& s) { return s.why_slower(); }); })
      .def("peak_bytes_by_tag",
           [](Engine& e) { return e.call([](Session& s) { return s.peak_bytes_by_tag(); }); })
      .def("pool_peak_bytes",
           [](Engine& e) { return e.call([](Session& s) { return s.pool_peak_bytes(); }); })
      .def("tier_description",
           [](Engine& e) { return e.call([](Session& s) { return s.tier_description(); }); })
      .def("threads", [](Engine& e) { return e.call([](Session& s) { return s.threads(); }); })
      .def("write_report", &write_report, "path"_a, "trace_path"_a, "loss"_a, "step_seconds"_a, "typical"_a,
           "command"_a)
      .def_prop_ro("network", [](const Engine& e) { return e.session.network(); });

  module.def("checkpoint_facts", [](const std::string& dir) {
    const CheckpointFacts facts = checkpoint_facts(dir);
    return nb::make_tuple(facts.step, facts.seed, nb::cast(facts.facts));
  });
}

}  // namespace penstock::python
