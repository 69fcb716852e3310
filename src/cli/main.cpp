#include "base/signals.h"
#include "cli/app.h"

int main(int argc, char** argv) {
  // Before anything is opened that might take their numbers.
  penstock::open_standard_descriptors();
  return penstock::cli::run(argc, argv);
}
