#pragma once

namespace penstock::cli {

/// The program: parses the arguments, runs the command, and turns errors into one line and an exit code (2
/// for the user's fault, 1 for a failure at run time).
int run(int argc, char** argv);

}  // namespace penstock::cli
