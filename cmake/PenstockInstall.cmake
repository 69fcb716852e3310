# Installs headers, libraries and the CMake package.
