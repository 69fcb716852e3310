#include <penstock/training.h>

#include <exception>

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock::python {
namespace {

Schedule make_schedule(const std::string& kind, std::int64_t every, double factor, std::int64_t warmup) {
  Schedule schedule;
  schedule.kind = choice<Schedule::Kind>("schedule", kind,
                                         {{"constant", Schedule::Kind::constant},
                                          {"step", Schedule::Kind::step},
                                          {"cosine", Schedule::Kind::cosine}});
  schedule.every = every;
  schedule.factor = factor;
  schedule.warmup = warmup;
  return schedule;
}

/// Python's functions that the loop calls; what one of them raises ends training after the step.
struct Listener {
  nb::object on_step;
  std::exception_ptr raised;

  void tell(const Progress& progress) {
    if (raised || on_step.is_none()) return;
    const nb::gil_scoped_acquire lock;
    try {
      on_step(progress);
    } catch (nb::python_error&) {
      raised = std::current_exception();
    }
  }

  bool stop() {
    const nb::gil_scoped_acquire lock;
    try {
      check_signals();
    } catch (nb::python_error&) {
      if (!raised) raised = std::current_exception();
    }
    return raised != nullptr;
  }
};

TrainingResult train_model(const ModelChoice& model, TrainingOptions options, const SessionOptions& session,
                           const nb::object& on_step) {
  Listener listener{on_step, nullptr};
  options.session = session;
  options.on_step = [&](const Progress& progress) { listener.tell(progress); };
  options.stop_requested = [&] { return listener.stop(); };
  TrainingResult result;
  {
    const nb::gil_scoped_release unlocked;
    result = train(model, options);
  }
  if (listener.raised) std::rethrow_exception(listener.raised);
  check_signals();
  return result;
}

}  // namespace

void bind_training(nb::module_& module) {
  nb::class_<Schedule>(module, "Schedule", "How the learning rate changes over the steps.")
      .def(
          "__init__",
          [](Schedule* self, const std::string& kind, std::int64_t every, double factor,
             std::int64_t warmup) { new (self) Schedule(make_schedule(kind, every, factor, warmup)); },
          "kind"_a = "constant", "every"_a = 1, "factor"_a = 0.1, "warmup"_a = 0)
      .def("at", &Schedule::at, "step"_a, "steps"_a, "base"_a,
           "The learning rate of a step of `steps` in all, where `base` is what the optimizer has.");

  nb::class_<Progress>(module, "Progress", "What a training loop tells after each step.")
      .def_ro("step", &Progress::step)
      .def_ro("steps", &Progress::steps)
      .def_ro("epoch", &Progress::epoch)
      .def_ro("loss", &Progress::loss)
      .def_ro("gradient_norm", &Progress::gradient_norm)
      .def_ro("step_seconds", &Progress::step_seconds)
      .def_ro("samples_per_second", &Progress::samples_per_second)
      .def_ro("learning_rate", &Progress::learning_rate)
      .def_ro("seconds_left", &Progress::seconds_left)
      .def_ro("memory_bytes", &Progress::memory_bytes)
      .def_ro("budget_bytes", &Progress::budget_bytes)
      .def_ro("stats", &Progress::stats);

  nb::class_<TrainingResult>(module, "TrainingResult", "What a run of ps.train() gave.")
      .def_ro("model", &TrainingResult::model)
      .def_ro("batch", &TrainingResult::batch)
      .def_ro("steps", &TrainingResult::steps)
      .def_ro("seed", &TrainingResult::seed)
      .def_ro("loss", &TrainingResult::loss)
      .def_ro("gradient_norm", &TrainingResult::gradient_norm)
      .def_ro("validation_loss", &TrainingResult::validation_loss)
      .def_ro("step_seconds", &TrainingResult::step_seconds)
      .def_ro("samples_per_second", &TrainingResult::samples_per_second)
      .def_ro("accuracy", &TrainingResult::accuracy)
      .def_ro("test_samples", &TrainingResult::test_samples)
      .def_ro("peak_rss_bytes", &TrainingResult::peak_rss_bytes)
      .def_ro("weights_sha256", &TrainingResult::weights_sha256)
      .def_ro("stopped", &TrainingResult::stopped)
      .def_ro("plan", &TrainingResult::plan)
      .def_ro("typical", &TrainingResult::typical);

  nb::class_<TrainingOptions>(module, "TrainingOptions")
      .def(nb::init<>())
      .def_rw("data", &TrainingOptions::data)
      .def_rw("batch", &TrainingOptions::batch)
      .def_rw("steps", &TrainingOptions::steps)
      .def_rw("epochs", &TrainingOptions::epochs)
      .def_rw("shuffle", &TrainingOptions::shuffle)
      .def_rw("evaluate", &TrainingOptions::evaluate)
      .def_rw("optimizer", &TrainingOptions::optimizer)
      .def_rw("schedule", &TrainingOptions::schedule)
      .def_rw("init_file", &TrainingOptions::init_file)
      .def_rw("save_file", &TrainingOptions::save_file)
      .def_rw("checkpoint_dir", &TrainingOptions::checkpoint_dir)
      .def_rw("checkpoint_every", &TrainingOptions::checkpoint_every)
      .def_rw("keep_checkpoints", &TrainingOptions::keep_checkpoints)
      .def_rw("resume_dir", &TrainingOptions::resume_dir)
      .def_rw("trace_file", &TrainingOptions::trace_file)
      .def_rw("report_file", &TrainingOptions::report_file)
      .def_rw("command", &TrainingOptions::command);

  nb::class_<ModelChoice>(module, "ModelChoice")
      .def(
          "__init__",
          [](ModelChoice* self, const std::string& name, std::int64_t channels, std::int64_t image_size,
             std::int64_t classes, const std::optional<Network>& network, std::int64_t sequence) {
            new (self) ModelChoice{name, channels, image_size, classes, {}, sequence};
            if (network) self->make = [network](const ModelOptions&) { return *network; };
          },
          "name"_a, "channels"_a = 0, "image_size"_a = 0, "classes"_a = 0, "network"_a = nb::none(),
          "sequence"_a = 0);

  module.def("train", &train_model, "model"_a, "options"_a, "session"_a, "on_step"_a = nb::none());
}

}  // namespace penstock::python
