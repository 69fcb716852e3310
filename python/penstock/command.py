"""The program `penstock`, which the package carries."""

import os
import sys


def main():
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "penstock")
    os.execv(program, [program, *sys.argv[1:]])
