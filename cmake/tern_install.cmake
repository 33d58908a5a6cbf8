# Installed: the public headers, the libraries, the program, and a CMake package (find_package(tern)).
