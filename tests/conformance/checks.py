# SPDX-License-Identifier: BSD-3-Clause
"""The checks of one case: forward, noncontiguous, out, inplace, error, gradient, sparse. Each gives a list of failures, at most one a kind."""
import copy
import re
import warnings

import torch

from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

from tests.python import compare

from . import samples as samples_, undetermined
from .difference import Failure, check_same, comparable, flatten
from .exceptions import Rules
from .samples import copied, has_double, on_mps, shown, widened

OUT_VARIANTS = ("strided", "resized", "other dtype")
ROWS = Rules("rows.txt").by_operator


def call(function, arguments):
    """(result, None) or (None, exception); what the device reports late is waited for."""
    try:
        result = function(*arguments[0], **arguments[1])
        torch.mps.synchronize()
        return result, None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
        return None, error


def plain(text):
    """An error text without what may differ: the name of the device, addresses."""
    text = str(text).partition("failed to match any schema")[0]  # what follows is a list of all arguments
    text = re.sub(r"MPS([A-Z][a-z]+)Type", r"torch.\1Tensor", text.replace("_cpu_template()", "_cpu()"))
    text = re.sub(r"(?i)(?<![a-z])(mps|cpu)(:0)?(?![a-z])", "DEVICE", text)
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def first_line(error):
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {(lines or [''])[0]:.160}"


def check_error(error, expected):
    """Both raised: the same type and text, but for what docs/fidelity.md says."""
    if isinstance(error, torch.AcceleratorError) and isinstance(expected, (IndexError, RuntimeError)):
        if re.search("out of|probability|multinomial", str(expected)):
            return
    if type(error) is not type(expected):
        missing = isinstance(error, NotImplementedError)
        raise Failure("missing" if missing else "error type", f"mps {first_line(error)} | cpu {first_line(expected)}")
    wordless = "(Could this error message be improved?" in str(expected)  # the condition in C++ is all that the CPU says
    if not wordless and plain(error) != plain(expected):
        raise Failure("error text", f"mps {first_line(error)} | cpu {first_line(expected)}")


def tensors(value):
    return [t for t in flatten(value) if isinstance(t, torch.Tensor)]


def names_device(arguments):
    return any(isinstance(x, (torch.Tensor, torch.device)) or x == "cpu" for x in flatten(arguments))


def overlaps(x):
    """Do several elements share a place? In-place calls on such tensors are refused or undefined."""
    return x.layout == torch.strided and x.numel() > 1 and x.numel() > 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride()))


def aliases(results, inputs):
    """For each result the number of the input whose memory it shares, or None."""
    places = [t.untyped_storage().data_ptr() for t in tensors(inputs) if t.layout == torch.strided]
    found = [r.untyped_storage().data_ptr() for r in tensors(results) if r.layout == torch.strided]
    return [places.index(p) if p in places else None for p in found]


def check_aliases(actual, mps, expected, cpu):
    a, e = aliases(actual, mps), aliases(expected, cpu)
    if a != e and all(r.numel() for r in tensors(expected)):
        raise Failure("view", f"results share memory with inputs: mps {a}, cpu {e}")


def check_surroundings(before, mps):
    """Arguments with memory between or around their elements, out= among them: nothing was written there."""
    try:
        compare.assert_untouched(before, [t for t in tensors(mps) if not getattr(t, "stays", False)])
    except AssertionError as error:
        raise Failure("outside", str(error)) from None


def repeatable(function, arguments, expected):
    """Does the CPU give the same again and again, the generator going on? Then values of a random operator compare (dropout with p = 0)."""
    def numbers(tensor):
        return comparable(tensor if tensor.layout == torch.strided else tensor.to_dense()).nan_to_num(7)

    def same(again):
        return all(torch.equal(numbers(a), numbers(e)) for a, e in zip(tensors(again), tensors(expected)))

    return all(same(call(function, copied(arguments))[0]) for _ in range(24))


def unsupported(error):
    """Has the CPU no kernel for this dtype?"""
    return error is not None and "not implemented for" in str(error)


def raised(error):
    kind = "missing" if isinstance(error, NotImplementedError) else "raises"
    return Failure(kind, f"mps {first_line(error)}")


class Case:
    """Runs checks and collects results."""

    def __init__(self, name, dtype, entry, random, tell=lambda *_: None):
        self.name, self.dtype, self.entry, self.random, self.tell = name, dtype, entry, random, tell
        self.rows = name in ROWS
        self.tolerance = undetermined.tolerance(name, dtype) or samples_.tolerance(entry, dtype) if dtype else None
        self.failures, self.counts, self.double = {}, {}, 0

    def attempt(self, check, number, arguments, function):
        """Runs one comparison, counting it, keeping the first failure of each kind."""
        self.tell(check, number)
        self.counts[check] = self.counts.get(check, 0) + 1
        try:
            function()
        except Failure as failure:
            self.fail(check, failure.kind, number, arguments, str(failure))
        except Exception as error:  # noqa: BLE001 - for instance an error of the device that a later wait reports
            self.fail(check, "missing" if isinstance(error, NotImplementedError) else "raises", number, arguments, f"mps {first_line(error)}")

    def fail(self, check, kind, number, arguments, text):
        first = {"check": check, "kind": kind, "sample": number, "text": f"({shown(arguments)}): {text}", "count": 0}
        self.failures.setdefault((check, kind), first)["count"] += 1

    def compare(self, function, arguments, memory=True):
        """One call on both devices: the results, and what became of the inputs."""
        sums = not memory or "polynomial" in self.name or not isinstance(self.entry, (UnaryUfuncInfo, BinaryUfuncInfo))
        mps, cpu = on_mps(arguments), copied(arguments)
        if not names_device(cpu):
            return  # numbers alone: nothing of it reaches a device
        versions = [t._version for t in tensors(cpu)]
        around = compare.surroundings([t for t in tensors(mps) if not getattr(t, "stays", False)])
        expected, cpu_error = call(function, cpu)
        actual, mps_error = call(function, mps)
        if self.random and unsupported(cpu_error):
            return
        if cpu_error is not None and mps_error is None and unsupported(cpu_error):
            (expected, cpu_error), memory = self.computed_wide(function, arguments, actual, cpu_error), False
        if cpu_error is not None:
            if mps_error is None:
                raise Failure("no error", f"cpu {first_line(cpu_error)}")
            return unsupported(cpu_error) and unsupported(mps_error) or check_error(mps_error, cpu_error)
        if mps_error is not None:
            raise raised(mps_error)
        values = not self.random or self.random != "undefined" and repeatable(function, arguments, expected)
        exact = (lambda: self.exact(function, arguments)) if values else None
        if values:
            undetermined.settle_indices(self.name, actual, expected, mps)
            self.leave_out(actual, expected, arguments)
        check_same(actual, expected, self.tolerance, exact, values=values, memory=memory, sums=sums, rows=self.rows)
        check_surroundings(around, mps)
        if memory:
            check_aliases(actual, mps, expected, cpu)
        returned = [id(t) for t in tensors(expected)]
        changed = [(m, c) for m, c, v in zip(tensors(mps), tensors(cpu), versions) if c._version != v and id(c) not in returned]
        check_same([m for m, _ in changed], [c for _, c in changed], self.tolerance, values=values)

    def leave_out(self, actual, expected, arguments):
        """Makes elements equal that are not to be compared."""
        for a, e in zip(tensors(actual), tensors(expected)):
            mask = undetermined.left_out(self.name, arguments, e.shape)
            if mask is not None and a.shape == e.shape and a.dtype == e.dtype:
                e.detach().masked_fill_(mask, 0)
                a.detach().masked_fill_(mask.to("mps"), 0)

    def exact(self, function, arguments, integers=None):
        """The call in double precision, or None where that has no meaning."""
        torch.set_default_dtype(torch.float64)  # for integers that become floating
        try:
            wide = widened(arguments, integers)
            return function(*wide[0], **wide[1])
        except Exception:  # noqa: BLE001 - then there is no judge
            return None
        finally:
            torch.set_default_dtype(torch.float32)

    def computed_wide(self, function, arguments, actual, error):
        """What the CPU would give, had it this dtype: its result in double precision, rounded to the dtype of mps."""
        integers = None if self.dtype is None or self.dtype.is_floating_point or self.dtype.is_complex else self.dtype
        result = self.exact(function, arguments, integers)
        if result is None:
            return None, RuntimeError(f"no wider dtype works: {error}")
        pairs = zip(flatten(result), flatten(actual))
        return [r.to(a.dtype) if isinstance(r, torch.Tensor) and isinstance(a, torch.Tensor) else r for r, a in pairs], None


def operator_arguments(sample):
    return (sample.input, *sample.args), sample.kwargs


class OperatorCase(Case):
    def run(self, checks, limit):
        if self.dtype is None:
            return self.error()
        if {"forward", "noncontiguous", "out", "inplace"} & set(checks):
            for place, (number, sample) in enumerate(samples_.operator_samples(self.entry, self.dtype, limit)):
                if has_double(operator_arguments(sample)):
                    self.double += 1
                    continue
                self.one(checks, place, number, sample)
        if "sparse" in checks:
            for number, (_, sample) in enumerate(samples_.sparse_samples(self.entry, self.dtype, limit)):
                arguments = operator_arguments(sample)
                if has_double(arguments):
                    self.double += 1
                    continue
                self.attempt("sparse", number, arguments, lambda: self.compare(self.entry.op, arguments))
        if "gradient" in checks and self.entry.supports_autograd and not self.random and self.differentiable():
            self.gradient(limit)

    def differentiable(self):
        claimed = set(self.entry.supported_backward_dtypes("cpu")) | set(self.entry.supported_backward_dtypes("mps"))
        return self.dtype in claimed

    def one(self, checks, place, number, sample):
        op, arguments = self.entry.op, operator_arguments(sample)
        if "forward" in checks:
            self.attempt("forward", number, arguments, lambda: self.compare(op, arguments))
        if "noncontiguous" in checks:
            try:
                strided = samples_.strided(arguments)
            except Exception:  # noqa: BLE001 - sparse samples have no strides
                strided = None
            if strided:
                self.attempt("noncontiguous", number, strided, lambda: self.compare(op, strided))
        if "out" in checks and self.entry.supports_out:
            for variant in OUT_VARIANTS if place == 0 else OUT_VARIANTS[place % 3:][:1]:
                self.attempt("out", number, arguments, lambda: self.out(op, arguments, variant))
        inplace = self.entry.get_inplace() if "inplace" in checks and not sample.broadcasts_input else None
        if inplace is not None and not any(map(overlaps, tensors(sample.input))):
            self.attempt("inplace", number, arguments, lambda: self.compare(inplace, arguments))

    def out(self, op, arguments, variant):
        """out= with other strides, out= of no elements, out= of another dtype. Two CPU tensors are made, equal, one goes to the device."""
        result, error = call(op, copied(arguments))
        if error is not None or not tensors(arguments) or not all(isinstance(r, torch.Tensor) and r.layout == torch.strided for r in flatten(result)):
            return
        outs = [make_out(r, variant) for r in flatten(result)]
        single = isinstance(result, torch.Tensor)

        def function(*values, out, **options):
            before = [o.data_ptr() for o in out]
            returned = op(*values, out=out[0] if single else tuple(out), **options)
            kept = [b == o.data_ptr() or variant == "resized" for b, o in zip(before, out)]
            return [out, [r is o or r.data_ptr() == o.data_ptr() for r, o in zip(flatten(returned), out)], kept]

        if not all(o.layout == torch.strided for o in outs):
            return
        try:
            self.compare(function, (arguments[0], {**arguments[1], "out": outs}))
        except Failure as failure:
            if variant == "other dtype" and "not implemented for" in str(failure):
                return  # the CPU computes in the dtype of out= here, and has no kernel for that one
            raise Failure(failure.kind, f"out {variant}: {failure}") from None

    def error(self):
        samples_.seed()
        for number, given in enumerate(self.entry.error_inputs("cpu")):
            arguments = samples_.narrowed(operator_arguments(given.sample_input))
            self.attempt("error", number, arguments, lambda: compare_errors(self.entry.op, arguments))

    def gradient(self, limit):
        for number, sample in samples_.operator_samples(self.entry, self.dtype, limit, requires_grad=True):
            arguments = operator_arguments(sample)
            if has_double(arguments):
                self.double += 1
                continue

            def function(*values, **options):
                result = sample.output_process_fn_grad(self.entry.op(*values, **options))
                return gradients(result, [v for v in tensors((values, options)) if v.requires_grad])

            self.attempt("gradient", number, arguments, lambda: self.compare(function, arguments, memory=False))


class ModuleCase(Case):
    def run(self, checks, limit):
        if self.dtype is None:
            return self.error()
        for training in (True, False) if self.entry.train_and_eval_differ else (True,):
            for number, sample in samples_.module_samples(self.entry, self.dtype, training, limit, requires_grad="gradient" in checks):
                module = self.entry.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs).to(self.dtype).train(training)
                given = sample.forward_input
                arguments = (given.args, given.kwargs) if given else ((), {})
                if self.entry.is_lazy:
                    module(*copied(arguments)[0], **arguments[1])
                for check in ("forward", "noncontiguous", "gradient"):
                    if check in checks and not (check == "gradient" and self.random):
                        self.one(check, number, module, arguments)

    def one(self, check, number, module, arguments):
        if check == "noncontiguous":
            arguments = samples_.strided(arguments)

        def function(*values, **options):
            device = next((v.device for v in tensors((values, options))), torch.device("cpu"))
            wide = any(v.dtype in samples_.DOUBLE for v in tensors((values, options)))
            own = copy.deepcopy(module).to(device)
            own = own.to(samples_.WIDE.get(self.dtype, self.dtype)) if wide else own
            result = own(*values, **options)
            if check != "gradient":
                return result, list(own.buffers())
            return gradients(result, [v for v in tensors((values, options)) if v.requires_grad] + list(own.parameters()))

        self.attempt(check, number, arguments, lambda: self.compare(function, arguments, memory=check != "gradient"))

    def error(self):
        samples_.seed()
        options = {"device": "cpu", "dtype": torch.float32, "requires_grad": False, "training": True}
        for number, given in enumerate(self.entry.module_error_inputs_func(self.entry, **options)):
            sample = given.module_error_input
            arguments = samples_.narrowed((sample.forward_input.args, sample.forward_input.kwargs) if sample.forward_input else ((), {}))

            def function(*values, **options):
                device = next((v.device for v in tensors((values, options))), torch.device("cpu"))
                return self.entry.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs).to(device)(*values, **options)

            self.attempt("error", number, arguments, lambda: compare_errors(function, arguments))


def make_out(result, variant):
    """A CPU tensor to be given as out=, filled with something that must not be seen in the result."""
    if variant == "resized":
        return torch.empty(0, dtype=result.dtype)
    if variant == "other dtype":
        return torch.zeros(result.shape, dtype=torch.int64 if result.dtype.is_floating_point or result.dtype.is_complex else torch.float32)
    out = torch.testing._internal.common_utils.noncontiguous_like(torch.ones_like(result, memory_format=torch.contiguous_format))
    return compare.bordered(out.fill_(1))


def compare_errors(function, arguments):
    expected = call(function, copied(arguments))[1]
    if expected is None:
        return
    actual = call(function, on_mps(arguments))[1]
    if actual is None:
        raise Failure("no error", f"cpu {first_line(expected)}")
    check_error(actual, expected)


def gradients(result, inputs):
    """Gradients of the sum of all outputs, each element weighted so that no symmetry hides a mistake. Weights are numbers of 8 bits, the same ones
    in every dtype: the call in double precision judges the same gradient."""
    outputs = [r for r in tensors(result) if r.requires_grad]
    if not outputs or not inputs:
        return []
    weights = []
    for output in outputs:
        steps = torch.arange(output.numel(), dtype=torch.float64).reshape(output.shape)
        weight = 0.75 + torch.floor(64 * torch.frac(steps * 0.6180339887498949)) / 128
        weights.append(weight.to(output.dtype).to(output.device))
    return list(torch.autograd.grad(outputs, inputs, weights, allow_unused=True))


def run_case(case, checks, limit, random, tell=lambda *_: None):
    """Runs `operator:dtype`; the dictionary goes into the results file."""
    name, dtype_name = case.rsplit(":", 1)
    dtype = None if dtype_name == "any" else getattr(torch, dtype_name)
    entry, kind = (samples_.OPERATORS[name], OperatorCase) if name in samples_.OPERATORS else (samples_.MODULES[name], ModuleCase)
    runner = kind(name, dtype, entry, random.get(name), tell)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            runner.run(checks, limit)
        except Exception as error:  # noqa: BLE001 - a sample that cannot be made is a failure of the case, not of the run
            runner.fail("samples", "raises", 0, ((), {}), first_line(error))
    return {"case": case, "counts": runner.counts, "double": runner.double, "failures": list(runner.failures.values())}
