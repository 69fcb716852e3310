#include <penstock/errors.h>

#include <exception>
#include <string>

#include "bindings.h"

namespace nb = nanobind;

namespace penstock::python {
namespace {

/// Raises `type` with the message and what is known of the budget.
void raise_budget(PyObject* type, const BudgetTooSmall& error) {
  nb::object raised = nb::borrow(type)(error.what());
  const BudgetFacts& facts = error.facts();
  raised.attr("budget_bytes") = facts.budget_bytes;
  raised.attr("needed_bytes") = facts.needed_bytes;
  raised.attr("advised_bytes") = facts.advised_bytes;
  PyErr_SetObject(type, raised.ptr());
}

PyObject* new_type(nb::module_& module, const char* name, PyObject* base, const char* doc) {
  const std::string full = std::string("penstock.") + name;
  PyObject* type = PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr);
  if (type == nullptr) throw nb::python_error();
  module.attr(name) = nb::borrow(type);
  return type;
}

struct ErrorTypes {
  PyObject *user = nullptr, *budget = nullptr, *run = nullptr;
};
ErrorTypes types;

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const BudgetTooSmall& error) {
    raise_budget(types.budget, error);
  } catch (const UserError& error) {
    PyErr_SetString(types.user, error.what());
  } catch (const RunError& error) {
    PyErr_SetString(types.run, error.what());
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  types.user = new_type(module, "UserError", PyExc_ValueError,
                        "What the caller can mend: an option, an array, a file, a budget. One line says what "
                        "is wrong and what to do.");
  types.budget = new_type(module, "BudgetTooSmall", types.user,
                          "The network does not fit the memory that was named. `budget_bytes` is what was "
                          "named, `advised_bytes` the smallest to name.");
  types.run = new_type(module, "RunError", PyExc_RuntimeError,
                       "A failure at run time: a full disk, an I/O error. The session has ended.");
  nb::register_exception_translator(translate);
}

void refuse_choice(const char* option, const std::string& name, const std::vector<std::string>& known) {
  std::string list;
  for (const std::string& each : known) list += (list.empty() ? "" : ", ") + each;
  throw UserError(std::string(option) + " '" + name + "' is not known; there are " + list);
}

}  // namespace penstock::python
