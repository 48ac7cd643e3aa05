# Chooses the C++ compiler and the CMake that are new enough; sourced by scripts/setup and scripts/build.

readonly need_gcc=12 need_clang=14 need_cmake=3.25

at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -1)" = "$2" ]; }

# Is the compiler $1 there, and new enough?
compiler_will_do() {
    command -v "$1" >/dev/null || return 1
    local macros
    macros=$("$1" -E -dM -x c++ /dev/null 2>/dev/null) || return 1
    if grep -q '__clang_major__' <<<"$macros"; then
        at_least "$(awk '$2 == "__clang_major__" {print $3}' <<<"$macros")" $need_clang
    else
        at_least "$(awk '$2 == "__GNUC__" {print $3}' <<<"$macros")" $need_gcc
    fi
}

# The compiler to build with: $CXX if set, else the first of the usual names that is new enough; empty if none is.
find_cxx() {
    local name
    for name in ${CXX:-c++ g++ g++-12 g++-13 g++-14 clang++ clang++-14}; do
        if compiler_will_do "$name"; then echo "$name"; return; fi
    done
}

# The cmake to configure with, from the system or from .venv; empty if neither is new enough.
find_cmake() {
    local name
    for name in cmake "$PWD/.venv/bin/cmake"; do
        if command -v "$name" >/dev/null && at_least "$("$name" --version | awk 'NR == 1 {print $3}')" $need_cmake; then
            echo "$name"; return
        fi
    done
}
