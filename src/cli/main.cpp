#include "cli/app.h"

int main(int argc, char** argv) {
  return penstock::cli::run(argc, argv);
}
