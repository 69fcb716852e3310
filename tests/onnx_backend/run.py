"""Runs ONNX's own tests (onnx.backend.test) on Penstock, case by case.

    python tests/onnx_backend/run.py build/tests/onnx_cases [--update]

Needs onnx and numpy. Counts cases with floating-point outputs: node cases, and those that were converted from
PyTorch. tests/onnx_backend/passing.txt lists what passes: a case of the list that does not pass, and any case
whose result is wrong rather than refused, is an error. --update writes the list anew.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

HERE = pathlib.Path(__file__).resolve().parent
LIST = HERE / "passing.txt"


def is_floating(array):
    return getattr(array, "dtype", None) is not None and ("float" in str(array.dtype))


def write_node_case(case, folder):
    """The case as files; whether an output is floating point."""
    (folder / case.name).mkdir()
    (folder / case.name / "model.onnx").write_bytes(case.model.SerializeToString())
    (folder / case.name / "tolerance").write_text(f"{case.rtol} {case.atol}")
    floating = False
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / case.name / f"test_data_set_{number}"
        data.mkdir()
        for kind, values in (("input", inputs), ("output", outputs)):
            for i, value in enumerate(values):
                if isinstance(value, (np.ndarray, np.generic)):
                    value = numpy_helper.from_array(np.asarray(value))
                if isinstance(value, onnx.TensorProto):
                    (data / f"{kind}_{i}.pb").write_bytes(value.SerializeToString())
                    if kind == "output":
                        floating |= value.data_type in (1, 10, 11, 16)
    return floating


def node_cases(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = [case for case in collect_testcases(None) if case.model is not None]
    return {case.name: folder / case.name for case in cases if write_node_case(case, folder)}


def converted_cases():
    """Cases from PyTorch, which the package has as files."""
    found = {}
    for kind in ("pytorch-converted", "pytorch-operator"):
        for case in load_model_tests(kind=kind):
            folder = pathlib.Path(case.model_dir)
            outputs = sorted(folder.glob("test_data_set_*/output_*.pb"))
            types = {onnx.TensorProto.FromString(path.read_bytes()).data_type for path in outputs}
            if types & {1, 10, 11, 16}:
                found[case.name] = folder
    return found


def run(program, folders):
    """Results by case: (word, reason). A program that dies is started again behind the case that killed it."""
    results, left = {}, dict(folders)
    by_folder = {path.name: name for name, path in folders.items()}
    while left:
        done = subprocess.run([program, *map(str, left.values())], capture_output=True, text=True)
        for line in done.stdout.splitlines():
            word, _, rest = line.partition(" ")
            folder, _, reason = rest.partition(": ")
            if folder in by_folder and by_folder[folder] in left:
                results[by_folder[folder]] = (word, reason)
                del left[by_folder[folder]]
        if left and done.returncode != 0:
            name = next(iter(left))
            results[name] = ("wrong", f"the program ends with {done.returncode}: {done.stderr.strip()[:200]}")
            del left[name]
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    passing, failed = [], []
    listed = set(LIST.read_text().split()) if LIST.exists() else set()
    with tempfile.TemporaryDirectory() as temporary:
        kinds = {"node": node_cases(pathlib.Path(temporary)), "pytorch": converted_cases()}
        for kind, folders in kinds.items():
            results = run(arguments.program, folders)
            count = {word: sum(r[0] == word for r in results.values()) for word in ("pass", "refused", "wrong")}
            print(f"{kind}: {count['pass']} of {len(folders)} pass, {count['refused']} are refused, "
                  f"{count['wrong']} are wrong")
            passing += [name for name, result in results.items() if result[0] == "pass"]
            for name, (word, reason) in sorted(results.items()):
                if word == "wrong" or (name in listed and word != "pass"):
                    failed.append(f"{word} {name}: {reason}")
                elif arguments.verbose and word == "refused":
                    print(f"refused {name}: {reason}")
    if arguments.update:
        LIST.write_text("\n".join(sorted(passing)) + "\n")
        listed = set(passing)
    for line in failed:
        print(line)
    missing = listed - set(passing)
    if missing:
        print(f"{len(missing)} cases of the list do not pass")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
