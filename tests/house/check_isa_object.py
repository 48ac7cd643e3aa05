"""Fails if a sealed kernel object defines any global symbol but its table, or runs code before main()."""
import argparse
import subprocess
import sys

SANITIZER_PREFIXES = ("__asan_", "__odr_asan", "__tsan_", "__ubsan_")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nm", required=True)
    parser.add_argument("--table", required=True)
    parser.add_argument("--sanitized", action="store_true", help="sanitizers add start-up code of their own: allow it")
    parser.add_argument("object")
    args = parser.parse_args()

    listing = subprocess.run([args.nm, "--format=posix", args.object], capture_output=True, text=True, check=True)
    defined = []
    for line in listing.stdout.splitlines():
        name, kind = line.split()[:2]
        if kind in "uVW" or kind.isupper() and kind != "U":  # u, V and W: the inline functions and variables of C++
            defined.append(name)
    problems = [f"global symbol {name}" for name in defined if name != args.table]
    if args.sanitized:
        problems = [p for p in problems if not p.split()[-1].startswith(SANITIZER_PREFIXES)]
    if args.table not in defined:
        problems.append(f"the table {args.table} is not there")

    with open(args.object, "rb") as file:
        content = file.read()
    if not args.sanitized and (b".init_array" in content or b".ctors" in content):
        problems.append("a static initialiser: it would run on CPUs that lack the instructions (make the object constexpr)")

    for problem in problems:
        print(f"{args.object}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
