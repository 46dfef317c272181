"""What a twin of a module in another size takes over from it. Torch is not imported.

The class is built anew. Its options, what was changed since, hooks and buffers come
from the module; the laws write the weights.
"""

import inspect
import re
import sys
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from mha.laws.subjects.results import near

WIDTHS = "d_model embed_dim dim hidden_size n_embd width d_in d_out d".split()
COUNTS = "n_heads num_heads heads n_head nhead num_attention_heads h".split()
KEY_COUNTS = "n_kv_heads num_kv_heads num_key_value_heads".split()
HEAD_WIDTHS = "d_k d_v d_head head_dim dim_head head_size".split()
BIASES = "bias", "qkv_bias", "use_bias"
SIZES = *WIDTHS, *COUNTS, *KEY_COUNTS, *HEAD_WIDTHS, *BIASES, "device", "dtype"
# What the laws write into, or leave as it was built.
LOADED_BY_ENCODERS = re.compile(
    r"(^|\.)((W_[QKVO12]|norm_?[12]|(final_)?norm|linear[12]|out_proj)\.(weight|bias)"
    r"|in_proj_(weight|bias)|bias_[kv])$"
)
MISSING = object()


def parameters_of(kind: type) -> dict[str, inspect.Parameter]:
    """Return the parameters of a constructor, with those that it hands on."""
    found: dict[str, inspect.Parameter] = {}
    for parent in kind.__mro__:
        if "__init__" in vars(parent):
            _, *own = inspect.signature(vars(parent)["__init__"]).parameters.values()
            stars = [p for p in own if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
            found = {p.name: p for p in own if p not in stars} | found
            if not any(p.kind is p.VAR_KEYWORD for p in stars):
                break
    return found


def refuse(module: Any, name: str) -> None:
    """Raise TypeError for a module of which there can be no twin, with the remedy."""
    torch = sys.modules["torch"]
    if isinstance(module, torch.jit.ScriptModule):
        raise TypeError(f"{name} is a script; give laws.check the layer it is made of")
    for inner in ("_orig_mod", "module"):
        if list(module._modules) == [inner]:
            raise TypeError(
                f"{name} is a wrapper around {type(module._modules[inner]).__name__}; "
                f"give laws.check what it wraps, layer.{inner}"
            )
    for path, x in state(module).items():
        if torch.nn.parameter.is_lazy(x) or x.is_meta:
            raise TypeError(
                f"{name} has no numbers in {path} yet; call it once, or move it from "
                "device meta, before laws.check"
            )
    plain = torch.nn.Linear, torch.nn.LayerNorm, torch.nn.MultiheadAttention
    for path, part in module.named_modules():
        for x in ("weight", "bias", "in_proj_weight"):
            computed = isinstance(part, plain) and x not in part._parameters
            if computed and getattr(part, x, None) is not None:
                raise TypeError(
                    f"{name} computes {_join(path, x)} from other numbers (it is "
                    "pruned or parametrized), where a law writes; remove that first"
                )


def state(module: Any) -> dict[str, Any]:
    """Return parameters and buffers, shared ones under each of their names."""
    named = module.named_parameters, module.named_buffers
    return {name: x for f in named for name, x in f(remove_duplicate=False)}


def told(
    module: Any, names: dict[str, inspect.Parameter], built: Any
) -> dict[str, Any]:
    """Return what the module says of these parameters where a default differs."""
    found = {}
    for name, parameter in names.items():
        value = getattr(module, name, MISSING)
        if parameter.default is parameter.empty and value is not MISSING:
            found[name] = value
        elif _is_plain(value) and not _same(value, getattr(built, name, MISSING)):
            found[name] = value
    return found


class Later:
    """What was done to a module after it was built, in comparison with a fresh one."""

    def __init__(self, module: Any, fresh: Any, loaded: re.Pattern[str]) -> None:
        self.state, self.loaded = state(module), loaded
        self.parts: dict[str, Any] = {}
        # What cannot have another size, and what cannot be carried over.
        self.lost: list[str] = []
        self.left: list[str] = []
        given, built = dict(module.named_modules()), dict(fresh.named_modules())
        for path in given | built:
            types = [type(x.get(path)).__name__ for x in (built, given)]
            if types[0] != types[1]:
                raise TypeError(f"there its part {path} is {', here '.join(types)}")
            first, (a, hooks) = _first(path), self._done(path, given[path], built[path])
            self.parts[path] = a, hooks
            b, others = self.parts[first]
            names = [x for x in a | b if a.get(x, MISSING) != b.get(x, MISSING)]
            # Hooks of several layers may come from one function that makes them.
            if [_made_by(x) for x in hooks] != [_made_by(x) for x in others]:
                names.append("a hook")
            if names:
                what = ", ".join(names)
                raise TypeError(f"its {path} was given {what} otherwise than {first}")
        fresh_state = state(fresh)
        for name in self.state | fresh_state:
            here, there = self.state.get(name), fresh_state.get(name)
            if here is None or there is None or here.shape != there.shape:
                raise TypeError(f"there its {name} is missing or of another shape")
            # A single number fits a twin of any size.
            kept = loaded.search(name) or bool((here.cpu() == there.cpu()).all())
            if here.ndim and not kept:
                self.lost.append(name)
        if _tied(self.state) != _tied(fresh_state):
            raise TypeError("there other parts share their weights than here")

    def _done(self, path, part, twin):
        ours, theirs, attributes, hooks = vars(part), vars(twin), {}, []
        for name in ours.keys() - vars(sys.modules["torch"].nn.Module()).keys():
            x, y = ours[name], theirs.get(name, MISSING)
            if _is_plain(x):
                attributes |= {} if _same(x, y) else {name: x}
            elif type(x) is not type(y) or callable(x):
                self.left.append(_join(path, name))
        for kind in ("forward_hook", "forward_pre_hook"):
            # Those that the constructor has set are there already.
            since = list(ours[f"_{kind}s"].items())[len(theirs[f"_{kind}s"]) :]
            flags = ours[f"_{kind}s_with_kwargs"]
            hooks += [(f"register_{kind}", hook, i in flags) for i, hook in since]
        return attributes, hooks

    def blamed(self, options: Iterable[str]) -> str:
        """Return what may be why a twin gives other numbers."""
        names = [*options, *self.left]
        return f"; it may be because of {' or '.join(names)}" if names else ""

    def put_on(self, twin: Any, weights: bool = False) -> Any:
        """Do the same to a twin, as far as its size allows, and return it."""
        for path, part in twin.named_modules():
            attributes, hooks = self.parts[path if path in self.parts else _first(path)]
            for name, x in attributes.items():
                is_method = isinstance(x, MethodType)
                setattr(part, name, MethodType(x.__func__, part) if is_method else x)
            for register, hook, with_kwargs in hooks:
                getattr(part, register)(hook, with_kwargs=with_kwargs)
        for name, x in state(twin).items():
            given = self.state.get(name)
            own = weights or not self.loaded.search(name)
            if own and given is not None and given.shape == x.shape:
                x.data.copy_(given.detach())
        return twin


def silence(twin: Any) -> Any:
    """Turn off all dropout of a twin that is run in train mode, and return it."""
    for part in twin.modules():
        for name, x in list(vars(part).items()):
            if ("drop" in name or name == "p") and type(x) is float and 0 < x <= 1:
                setattr(part, name, 0.0)
    return twin


def difference(ours: Any, theirs: Any) -> str:
    """Return by how much two answers differ, or "": errors are answers too."""
    if errors := [x for x in (ours, theirs) if isinstance(x, str)]:
        return "" if len(errors) == 2 else f"only one answers, {errors[0]}"
    if ours.shape != theirs.shape:
        return f"shape {theirs.shape} in place of {ours.shape}"
    if near(ours, theirs, 1e-6, equal_nan=True):
        return ""
    with np.errstate(all="ignore"):
        return f"up to {np.abs(ours - theirs).max():.3g}"


def _first(path):
    """Return the path of the same part in the first layer, which stands for all."""
    return re.sub(r"^layers\.\d+", "layers.0", path)


def _made_by(hook):
    register, function, with_kwargs = hook
    return register, getattr(function, "__code__", function), with_kwargs


def _join(path, name):
    return f"{path}.{name}" if path else name


def _tied(tensors):
    """Return which names mean one and the same tensor."""
    names = [{n for n, x in tensors.items() if x is y} for y in tensors.values()]
    return {frozenset(group) for group in names if len(group) > 1}


def _is_plain(x):
    if isinstance(x, FunctionType):
        return not x.__closure__
    if isinstance(x, tuple):
        return all(map(_is_plain, x))
    kinds = bool | int | float | str | None | MethodType | BuiltinFunctionType
    return isinstance(x, kinds)


def _same(x, y):
    if isinstance(x, MethodType) and isinstance(y, MethodType):
        return x.__func__ is y.__func__
    return type(x) is type(y) and x == y
