"""From models and engine files to engines, and what a model can be asked before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from . import _native
from ._compatibility import Compatibility
from ._errors import ArgumentError, UnsupportedError
from ._explanation import Explanation
from ._export import check_for
from ._legalise import check_module, target_names
from ._native import Engine
from ._options import Path, Range, Shape, checked_threads, compat_settings, is_path, model_bytes, path_bytes, plain_options, plugin_paths


def compile(model: Path | bytes | bytearray | memoryview | Any, args: Sequence[Any] | None = None,
            kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None, target: str = "native",
            shapes: Mapping[str, Shape] | None = None, dims: Mapping[str, Range] | None = None, tune_for: Mapping[str, Sequence[int]] | None = None,
            without: Sequence[str] = (), progress: Callable[[str, float], object] | None = None,
            external_data: Path | None = None, refittable: bool = False, tune: bool = False, tune_threads: int = 0,
            timing_cache: Path | None = None, engine_file: Path | None = None, precision: str = "model",
            plugins: Sequence[Path] = (), input_layouts: Mapping[str, str] | None = None, output_layouts: Mapping[str, str] | None = None) -> Engine:
    """Compiles a network into an engine.

    model: the path or the bytes of an ONNX file or of a program of torch.export (.pt2, docs/torch.md), or an onnx.ModelProto;
        where PyTorch is installed also a torch.nn.Module, a torch.export.ExportedProgram, and TorchScript: a module of
        torch.jit or the path of its archive. What comes from PyTorch is exported by torch.export, in the mode (eval or
        training) that the module is in.
    args, kwargs: examples of the arguments that a module's forward takes, as for torch.export.export. The engine's inputs are
        named as they are, those inside lists and dicts by the way to them ("skips.0"), outputs output_0, output_1, ….
    dynamic_shapes: which sizes of them stay open, as for torch.export.export: {"x": {2: torch.export.Dim.AUTO}}.
    target: 'native', packed for this CPU's instructions; 'portable', for any CPU, packs its weights when loaded; 'scalar',
        'avx2', 'avx512', 'avx512_bf16' or 'amx', packed for every CPU that has them.
    shapes: input name to its sizes in elements, numbers or names: {"x": (1, 3, "H", "W")} or {"x": "1x3xHxW"}. A name is a
        symbolic size, the same name the same size. Inputs that are not listed keep the shape of the model.
    dims: symbolic size to (low, high), both included, or to the number that fixes it: {"H": (64, 1024), "N": 1}.
    tune_for: input name to the sizes that kernels are chosen for where sizes are symbolic; any other size runs too.
    without: names of passes to leave out; pass_names() lists them.
    progress: called as stages begin with the stage's name and the share that is done, 0 to 1. What it raises ends the
        compilation and is raised here.
    external_data: where the files lie that hold weights outside of a model given as bytes; a model file has them beside itself.
    refittable: the engine takes other weights later (Engine.refit). It is up to twice as large, since it keeps the elements
        of weights that meet in one constant, such as a convolution's and its batch norm's.
    tune: kernels and layouts are chosen by what they take on this CPU, measured at the sizes of tune_for where sizes are
        symbolic, not by estimates (docs/tuning.md). tune_threads: of the sessions to come; 0: one per core.
    timing_cache: the file that keeps what was measured, which any number of processes may share. None: timings.txt in
        $POLYPHASE_CACHE_DIR, else $XDG_CACHE_HOME/polyphase, else ~/.cache/polyphase.
    engine_file: where the engine is written while it is compiled, as Engine.save would write it. The engine that is returned has
        its weights in this file then, not in memory, and packed weights are never in memory together.
    precision: in what type convolutions may multiply; sums are FP32 or wider. 'model': in bf16 where the model's own tensors
        are; 'fp32': never narrower than FP32; 'auto': in bf16 wherever that is faster, where a convolution's error is at most some 6e-3
        of its L2 norm, or in FP32 with filters of four outputs, some 1e-6 (docs/semantics.md). bf16 takes a CPU with instructions for
        it, the filters take none; info()["remarks"] says how many convolutions use them.
    plugins: paths of shared libraries with operators that the network uses (docs/guides/plugins.md). Their code runs in this
        process; nothing else ever loads one.

    input_layouts, output_layouts: name of an input or output to how the caller has it, by the letters of its axes: {"x": "NHWC"}, any
        order, or channels in blocks as in "NCHW16c", (N, ceil(C/16), H, W, 16). The model's tensor is taken for channels-first (NCW,
        NCHW, NCDHW); "NCHW:NHWC" says both, the caller's and the model's. The engine's tensor has the caller's axes in the caller's
        order; shapes and tune_for are in it too.

    Other Python threads go on meanwhile; Ctrl-C ends the compilation.

    Raises Error: io, invalid_model, unsupported (names the node and says what would work; of a module also PyTorch's reason, with
    the line of the module in the trail), invalid_argument, out_of_memory.
    """
    if progress is not None and not callable(progress):
        raise ArgumentError(f"progress is a {type(progress).__name__}.", hint="Give a function of (stage, done), or None.")
    options = plain_options(target=target, shapes=shapes, dims=dims, tune_for=tune_for, without=without, external_data=external_data,
                            refittable=refittable, tune=tune, tune_threads=tune_threads, timing_cache=timing_cache, engine_file=engine_file, precision=precision,
                            plugins=plugins, input_layouts=input_layouts, output_layouts=output_layouts)
    given = not (args is None and kwargs is None and dynamic_shapes is None)
    if given or not (is_path(model) or isinstance(model, (bytes, bytearray, memoryview))):
        programs = _programs_of_torch(model, args, kwargs, dynamic_shapes, given, options["plugins"])
        if programs is not None:
            from .torch._export import compile_first

            engine: Engine = compile_first(programs, lambda program: _native.compile_bytes(program, options, progress))
            return engine
    if is_path(model):
        return _native.compile(path_bytes(model), options, progress)
    return _native.compile_bytes(model_bytes(model), options, progress)


def _programs_of_torch(model: Any, args: Any, kwargs: Any, dynamic_shapes: Any, given: bool, plugins: list[bytes]) -> Iterator[bytes] | None:
    """What PyTorch makes of a module of its own, or of a file of TorchScript; None: it is neither."""
    module = _module_of_torch(model, given)
    if module is None:
        return None
    from .torch import _export

    return _export.programs(module, args, kwargs, dynamic_shapes, frozenset(_native.torch_claims(plugins)))


def _module_of_torch(model: Any, given: bool) -> Any:
    """A module of PyTorch's, a program of its, or TorchScript, loaded where it is a file; None: it is none of them. `given`: with inputs."""
    if is_path(model):
        path_bytes(model)
        try:
            import torch as _  # noqa: F401
        except ImportError:
            raise UnsupportedError("example inputs are given with a file, which only PyTorch can use, and PyTorch is not installed.", "unsupported",
                                   hint="Install torch, or give the path of an ONNX file or a .pt2 program alone.") from None
    elif "torch" not in sys.modules:
        return None
    from .torch import _export

    if is_path(model) and _export.is_script(model):
        return _export.load_script(model)
    if _export.is_model(model):
        return model
    if not given:
        return None
    kind = "file" if is_path(model) else type(model).__name__
    raise ArgumentError(f"example inputs are given with a {kind} that is no module of PyTorch.", hint="Give the model alone; its sizes are the options shapes and dims.")


def load(engine: Path | bytes | bytearray | memoryview, plugins: Sequence[Path] = ()) -> Engine:
    """An engine from its file, or from the bytes of Engine.to_bytes, which are copied. A file is mapped: replace it by
    renaming, not in place.

    plugins: as for compile, of the operators that the engine was compiled with.

    Raises Error: io, corrupt, incompatible (another version, instructions that this CPU lacks, a plugin that is not given).
    """
    if is_path(engine):
        return _native.load(path_bytes(engine), plugin_paths(plugins))
    return _native.from_bytes(model_bytes(engine), plugin_paths(plugins))


def check(model: Path | Any, example: Sequence[Any] | None = None, *, targets: Sequence[str] | None = None, target: str = "native",
          shapes: Mapping[str, Shape] | None = None, dims: Mapping[str, Range] | None = None, tune_for: Mapping[str, Sequence[int]] | None = None,
          without: Sequence[str] = (), plugins: Sequence[Path] = ()) -> Any:
    """Looks at a model without compiling it: whether Polyphase takes a file, or, with `targets`, whether other engines take a module or a file.

        polyphase.check("model.onnx")                                            # by Polyphase
        polyphase.check(net, (x,), targets=["torch_tensorrt", "onnxruntime"])    # check_module: of a torch.nn.Module, with arguments of its forward
        polyphase.check("model.onnx", targets=["tensorrt", "tvm"])               # check_for, for each target; its name under 'target'

    Of a file without targets, what is missing is counted instead of ending the look.

    Returns plain data: 'ok' (it would compile and run), 'operators' (each with the nodes refused and why), 'sizes' (open
    ones, with their ranges), 'slow' (steps on plain loops, with what each kernel says), 'errors', 'notes', 'inputs', 'outputs'
    and more: the fields of CheckReport in polyphase/diagnose.h. The options are those of compile.

    Raises Error: io, invalid_model, invalid_argument.
    """
    options = plain_options(target=target, shapes=shapes, dims=dims, tune_for=tune_for, without=without, plugins=plugins)
    if targets is not None:
        return _check_for_others(model, example, targets)
    if not is_path(model):
        raise ArgumentError(f"the model is a {type(model).__name__}, and no targets are given.",
                            hint='Give the path of a file; or a torch.nn.Module, arguments of its forward, and targets=["tensorrt", …].')
    if example is not None:
        raise ArgumentError("example arguments are given with a file.", hint="They are for modules of PyTorch, with targets; sizes of a file are the options shapes and dims.")
    return _native.check(path_bytes(model), options)


def _check_for_others(model: Any, example: Any, targets: Sequence[str]) -> list[dict[str, Any]]:
    names = target_names(targets)
    if not is_path(model):
        return check_module(model, example, targets=names)
    if example is not None:
        raise ArgumentError("example arguments are given with a file.", hint="They are for modules of PyTorch.")
    return [{"target": name, **finding} for name in names for finding in check_for(model, name)]


def compat(model: Path | bytes | bytearray | memoryview | Any, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None, *,
           dynamic_shapes: Any = None, seed: int = 0, tolerance: float | None = None, only: str = "", sizes: Mapping[str, Sequence[int]] | None = None,
           target: str = "native", shapes: Mapping[str, Shape] | None = None, dims: Mapping[str, Range] | None = None,
           external_data: Path | None = None, progress: Callable[[str, float], object] | None = None, plugins: Sequence[Path] = ()) -> Compatibility:
    """Tests each distinct operator configuration of a network by itself: one test per operator, attributes, types, sizes and constants.

        found = polyphase.compat(net, (x,))          # or the path of an ONNX file or a .pt2 program
        print(found)                                  # a table
        found.save("compat.json")                     # for CI; also .md
        assert found.ok

    model: of a file or its bytes, or an onnx.ModelProto, the operators as they are imported are held against the reference interpreter, on the
        tensors that reach them when the model runs on random inputs: what `polyphase compat` does, without PyTorch. Of a torch.nn.Module, a
        torch.export.ExportedProgram or TorchScript, each distinct call of an ATen operator (overload, arguments, dtypes, sizes, contiguous
        or channels_last) is exported alone, compiled, and held against PyTorch on the very tensors that reach it: they may err four
        times as far from FP64 as PyTorch's own do, or by some units in the last place of the largest.
    args, kwargs, dynamic_shapes: as for compile; an ExportedProgram may hold its own.
    seed: of the random inputs. Those of a module are drawn from the elements of args, for the sizes that the example does not have.
    tolerance: another limit for float results: of a file the relative RMS error, of a module the worst element's share of the largest.
    only: an operator by its name, the others are left out: "conv_transpose"; of a module "aten.conv_transpose2d.input" or "conv_transpose2d".
    sizes: open size to the values it is tested at: {"H": (64, 65)}. Others get the least, a middle and an odd one that the network takes.
    target, shapes, dims, external_data, progress, plugins: as for compile; shapes and dims are of files alone.

    What the network needs and Polyphase lacks is a row of its own. Conditions and loops are one row each, and what runs inside has its own.

    Raises Error: io, invalid_model, unsupported (PyTorch cannot export the module), invalid_argument.
    """
    if progress is not None and not callable(progress):
        raise ArgumentError(f"progress is a {type(progress).__name__}.", hint="Give a function of (stage, done), or None.")
    settings = compat_settings(seed=seed, tolerance=tolerance, only=only, sizes=sizes)
    options = plain_options(target=target, shapes=shapes, dims=dims, tune_for=None, without=(), external_data=external_data, plugins=plugins)
    given = not (args is None and kwargs is None and dynamic_shapes is None)
    if given or not (is_path(model) or isinstance(model, (bytes, bytearray, memoryview))):
        module = _module_of_torch(model, given)
        if module is not None:
            if shapes or dims or external_data is not None:
                raise ArgumentError("shapes, dims or external_data are given with a module.", hint="Give dynamic_shapes.")
            from .torch import _compat

            def compile_one(call: Any, operands: Any, axes: Any) -> Engine:
                return compile(call, operands, dynamic_shapes=axes, target=target, plugins=plugins)

            return Compatibility(_compat.compat(module, args, kwargs, dynamic_shapes, settings, compile_one, progress))
    if is_path(model):
        return Compatibility(_native.compat(path_bytes(model), settings, options, progress))
    return Compatibility(_native.compat_bytes(model_bytes(model), settings, options, progress))


def explain(network: Callable[..., Any], /, *args: Any, options: Mapping[str, Any] | None = None, **kwargs: Any) -> Explanation:
    """What torch.compile(network, backend="polyphase") would run where, and why: nothing is compiled.

        print(polyphase.explain(net, x))

    The network is called once with the arguments, without gradients, and PyTorch computes it. options: those of the backend
    (docs/torch.md). Each operator that is left to PyTorch comes with the reason and one line of advice.

    Raises Error: invalid_argument (an option); what the network itself raises.
    """
    from .torch import _explain

    return _explain.explain(network, args, kwargs, options)


def compare_layers(model: Path, inputs: Mapping[str, Any] | Sequence[Any], *, golden: Mapping[str, Any] | None = None,
                   tolerance: float = 1e-4, keep_tensors: bool = False, measure: bool = False, threads: int = 0,
                   target: str = "native", shapes: Mapping[str, Shape] | None = None, dims: Mapping[str, Range] | None = None,
                   tune_for: Mapping[str, Sequence[int]] | None = None, without: Sequence[str] = (), plugins: Sequence[Path] = ()) -> dict[str, Any]:
    """Runs a model once and holds every tensor of it against a reference: which layer is wrong.

    inputs: arrays by name, or in order, as for Session.run.
    golden: tensors by their name in the model, of another system; None: the interpreter's, which runs the model as imported,
        before any pass, by the definitions of its operators.
    tolerance: a float tensor is past it if sqrt(mean (found - expected)^2) > tolerance * sqrt(mean expected^2).
    keep_tensors: 'found' and 'expected' hold the tensors themselves, as NumPy arrays by name.
    measure: 'run_seconds' is measured too. threads: as for Engine.session. The other options are those of compile.

    Returns plain data: 'layers', in the order of the model (tensor, node, operation, the kernel's row, relative_rms,
    largest_absolute, past_tolerance, …), 'first_past' and 'first_not_finite' (indices into layers, -1: none), 'unknown',
    'unobserved', and seconds: the fields of LayerReport in polyphase/diagnose.h.

    Raises Error: as compile and Session.run.
    """
    options = plain_options(target=target, shapes=shapes, dims=dims, tune_for=tune_for, without=without, plugins=plugins)
    named = isinstance(inputs, Mapping)
    if not named and (isinstance(inputs, (str, bytes)) or not isinstance(inputs, Sequence)):
        raise ArgumentError(f"the inputs are a {type(inputs).__name__}.", hint="Give arrays by name, or in order.")
    if golden is not None and not (isinstance(golden, Mapping) and all(isinstance(name, str) for name in golden)):
        raise ArgumentError("golden is no dict of names.", hint="Give arrays by their tensor's name.")
    settings = {"tolerance": float(tolerance), "keep_tensors": bool(keep_tensors), "measure": bool(measure), "threads": checked_threads(threads, "threads")}
    return _native.compare_layers(path_bytes(model), [] if named else list(inputs), dict(inputs) if named else {},
                                  dict(golden or {}), settings, options)
