"""The identity of a policy: a digest of what it would be pickled as, by value.

The digest covers the code of the policy and of all functions and classes that it uses, and the values that they use: closures,
defaults, globals, attributes. It is the same in another process, which a pickle need not be: sets have no order, and what is
shared differs. Packages that are installed count by their versions; modules beside the script count by value.

What cannot be told from something else, such as a lock or an open file, is refused: two sweeps could be taken for one.
"""

from __future__ import annotations

import copyreg
import dis
import enum
import functools
import hashlib
import importlib
import importlib.util
import os
import site
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from . import _native
from ._errors import InputError

__all__ = ["Identity", "identity_of"]

#: Entries of a class that say nothing about what it does, or differ between processes.
_NO_CONTENT = frozenset({
    "__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__annotate_func__", "__annotations_cache__",
    "__firstlineno__", "__static_attributes__", "__abstractmethods__", "_abc_impl", "__dataclass_fields__",
    "__dataclass_params__", "__orig_bases__", "__parameters__", "__qualname__", "__match_args__", "__slotnames__",
})
#: Attributes of a function that say nothing about what it does.
_OF_FUNCTION = frozenset({"__wrapped__"})
#: Types of which each value is told by its text.
_PLAIN = (type(None), bool, int, str, bytes, complex, type(Ellipsis), type(NotImplemented), range)

_ATTRIBUTES_OF_CODE = (
    "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_code", "co_names", "co_varnames",
    "co_freevars", "co_cellvars",
)


def _places() -> tuple[str, ...]:
    """The folders of installed packages."""
    paths = sysconfig.get_paths()
    folders = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple({os.path.realpath(folder) + os.sep for folder in folders})


@functools.cache
def _installed_places() -> tuple[str, ...]:
    return _places()


def is_local(name: object) -> bool:
    """True for a module that is not installed: a script, a notebook, or a file beside one."""
    if name is not None and not isinstance(name, str):
        # A type of a compiled package has a descriptor there.
        return False
    if name is None or name in ("__main__", "__mp_main__"):
        return True
    if name.split(".")[0] in ("builtins", "flashpath") or name.startswith("_cython_"):
        return False
    module = sys.modules.get(name)
    if module is None:
        # One that came by value from another process.
        return True
    spec = getattr(module, "__spec__", None)
    if spec is not None and spec.origin in ("built-in", "frozen"):
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        # A namespace of packages, or one that was made by a program.
        places = [os.path.realpath(place) + os.sep for place in getattr(module, "__path__", [])]
        return not any(place.startswith(_installed_places()) for place in places)
    return not os.path.realpath(file).startswith(_installed_places())


def _version(name: object) -> str:
    if not isinstance(name, str):
        return ""
    top = name.split(".")[0]
    if top == "flashpath":
        return _native.program()
    found = getattr(sys.modules.get(top), "__version__", None)
    return found if isinstance(found, str) else f"Python {sys.version_info[0]}.{sys.version_info[1]}"


class Identity:
    """A digest, and what has to be sent by value with the policies that have it."""

    def __init__(self) -> None:
        #: Modules that are not installed.
        self.modules: dict[str, types.ModuleType] = {}
        #: Classes that are not of an installed package.
        self.classes: list[type] = []
        self._known: dict[int, bytes] = {}
        #: What is known stays, so that nothing else gets its address.
        self._kept: list[Any] = []
        self._under_way: dict[int, int] = {}

    def digest(self, value: Any, place: str) -> bytes:
        """The digest of a value; ``place`` says in errors where it is."""
        if isinstance(value, _PLAIN) and type(value) in _PLAIN:
            return _hashed(type(value).__name__, repr(value).encode())
        if type(value) is float:
            return _hashed("float", value.hex().encode())
        known = self._known.get(id(value))
        if known is not None:
            return known
        if id(value) in self._under_way:
            return _hashed("again", str(len(self._under_way) - self._under_way[id(value)]).encode())
        if len(self._under_way) > 200:
            raise _unknown(value, place, "it is nested too deeply")
        self._under_way[id(value)] = len(self._under_way)
        try:
            found = _hashed(type(value).__qualname__, *self._parts(value, place))
        finally:
            del self._under_way[id(value)]
        self._known[id(value)] = found
        self._kept.append(value)
        return found

    def _all(self, values: Iterable[Any], place: str) -> Iterator[bytes]:
        return (self.digest(value, place) for value in values)

    def _items(self, values: Mapping[Any, Any], place: str) -> Iterator[bytes]:
        for key, value in values.items():
            yield self.digest(key, place)
            yield self.digest(value, f"{place}[{key!r}]")

    def _named(self, values: Mapping[str, Any], place: str) -> Iterator[bytes]:
        for name in sorted(values):
            yield name.encode()
            yield self.digest(values[name], f"{place}.{name}" if place else name)

    def _parts(self, value: Any, place: str) -> Iterator[bytes]:
        """What a value consists of."""
        if isinstance(value, types.CodeType):
            return self._of_code(value, place)
        if isinstance(value, types.FunctionType):
            return self._of_function(value, place)
        if isinstance(value, types.MethodType):
            return self._all((value.__func__, value.__self__), place)
        if isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
            owner = value.__self__
            of_owner = b"" if owner is None or isinstance(owner, types.ModuleType) else self.digest(owner, place)
            return iter((_name_of(value).encode(), of_owner))
        if isinstance(value, (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
                              types.MemberDescriptorType, types.GetSetDescriptorType)):
            return iter((value.__name__.encode(),))
        if isinstance(value, type):
            return self._of_class(value, place)
        if isinstance(value, types.ModuleType):
            # Where its attributes are used, they are told.
            return iter((value.__name__.encode(), b"" if is_local(value.__name__) else _version(value.__name__).encode()))
        if isinstance(value, types.CellType):
            return self._all(_content_of(value), place)
        if isinstance(value, (staticmethod, classmethod)):
            return self._all((value.__func__,), place)
        if isinstance(value, property):
            return self._all((value.fget, value.fset, value.fdel), place)
        if isinstance(value, functools.partial):
            return self._all((value.func, value.args, dict(sorted(value.keywords.items())), dict(vars(value))), place)
        if isinstance(value, enum.Enum):
            return self._all((type(value), value.name, value.value), place)
        if type(value) in (list, tuple):
            return self._all(value, place)
        if type(value) in (set, frozenset):
            return iter(sorted(self._all(value, place)))
        if type(value) in (dict, types.MappingProxyType):
            return self._items(value, place)
        if type(value) is bytearray:
            return iter((bytes(value),))
        if isinstance(value, memoryview):
            return iter((value.format.encode(), repr(value.shape).encode(), value.tobytes()))
        if getattr(type(value), "__module__", "") == "functools" and hasattr(value, "__wrapped__"):
            # A cache: what it holds is of what it wraps.
            return self._all((value.__wrapped__,), place)
        if _is_array(value):
            kind = value.dtype
            content = value.tolist() if kind.hasobject else value.tobytes()
            return self._all((str(kind.descr if kind.names else kind.str), tuple(value.shape), content), place)
        return self._of_object(value, place)

    def _of_code(self, code: types.CodeType, place: str) -> Iterator[bytes]:
        for name in _ATTRIBUTES_OF_CODE:
            yield self.digest(getattr(code, name), place)
        yield self.digest(getattr(code, "co_exceptiontable", b""), place)
        yield from self._all(code.co_consts, place)

    def _of_function(self, function: types.FunctionType, place: str) -> Iterator[bytes]:
        if not is_local(function.__module__):
            yield from (_name_of(function).encode(), _version(function.__module__).encode())
            return
        self._note_module(function.__module__)
        yield from self._all((function.__code__, function.__defaults__), place)
        yield from self._named(function.__kwdefaults__ or {}, place)
        cells = function.__closure__ or ()
        yield from self._named(dict(zip(function.__code__.co_freevars, cells, strict=True)), place)
        attributes = {name: value for name, value in vars(function).items() if name not in _OF_FUNCTION}
        yield from self._named(attributes, place)
        yield from self._used(function, place)

    def _used(self, function: types.FunctionType, place: str) -> Iterator[bytes]:
        """The globals and the attributes of modules that a function uses."""
        used: dict[str, Any] = {}
        codes = list(_codes(function.__code__))
        for code in codes:
            for step in dis.get_instructions(code):
                name = step.argval
                if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and name in function.__globals__:
                    used[name] = function.__globals__[name]
                elif step.opname == "IMPORT_NAME":
                    used[f"import {name}"] = self._imported(name, function, place)
        words = {name for code in codes for name in code.co_names}
        words |= {word for code in codes for word in code.co_consts if isinstance(word, str) and word.isidentifier()}
        modules = [value for value in (*used.values(), *map(_first_content, function.__closure__ or ()))
                   if isinstance(value, types.ModuleType)]
        seen: set[str] = set()
        while modules:
            module = modules.pop()
            if module.__name__ in seen or not is_local(module.__name__):
                continue
            seen.add(module.__name__)
            self._note_module(module.__name__, module)
            for name in sorted(words & set(vars(module))):
                attribute = vars(module)[name]
                used[f"{module.__name__}.{name}"] = attribute
                if isinstance(attribute, types.ModuleType):
                    modules.append(attribute)
        yield from self._named(used, "")

    def _imported(self, name: str, function: types.FunctionType, place: str) -> Any:
        package = function.__globals__.get("__package__") or ""
        for wanted in (name, f"{package}.{name}" if package and name else package):
            try:
                if wanted:
                    return importlib.import_module(wanted)
            except ImportError:
                continue
        raise InputError(f"the policy imports {name}, which is not found here (in {place})")

    def _of_class(self, value: type, place: str) -> Iterator[bytes]:
        if not is_local(value.__module__):
            yield from (_name_of(value).encode(), _version(value.__module__).encode())
            return
        self._note_module(value.__module__)
        self.classes.append(value)
        yield value.__name__.encode()
        yield from self._all((*value.__bases__, type(value)), place)
        entries = {name: entry for name, entry in vars(value).items() if name not in _NO_CONTENT}
        if isinstance(value, enum.EnumMeta):
            members: Mapping[str, Any] = vars(value)["_member_map_"]
            entries = {name: member.value for name, member in members.items()}
        yield from self._named(entries, value.__name__)

    def _of_object(self, value: Any, place: str) -> Iterator[bytes]:
        """An object, by that by which it would be pickled."""
        try:
            registered = copyreg.dispatch_table.get(type(value))
            reduced: Any = value.__reduce_ex__(4) if registered is None else registered(value)
        except Exception as error:
            raise _unknown(value, place, str(error)) from error
        self._kept.append(reduced)
        yield self.digest(type(value), place)
        if isinstance(reduced, str):
            yield reduced.encode()
            return
        parts_of: list[Any] = [*reduced, None, None, None, None]
        make, arguments, state, items, pairs = parts_of[:5]
        yield from self._all((make, arguments), place)
        parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
        for part in parts:
            if isinstance(part, dict) and all(isinstance(name, str) for name in part):
                yield from self._named(part, place)
            else:
                yield self.digest(part, place)
        yield from self._all((list(items or ()), dict(pairs or ())), place)

    def _note_module(self, name: str | None, module: types.ModuleType | None = None) -> None:
        found = module or sys.modules.get(name or "")
        if name and name not in ("__main__", "__mp_main__") and found is not None:
            self.modules[name] = found


def _hashed(kind: str, *parts: bytes) -> bytes:
    found = hashlib.sha256(kind.encode())
    for part in parts:
        found.update(b"%d:" % len(part))
        found.update(part)
    return found.digest()


def _name_of(value: Any) -> str:
    module = getattr(value, "__module__", None)
    return f"{module if isinstance(module, str) else ''}.{getattr(value, '__qualname__', value.__name__)}"


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _content_of(cell: types.CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def _first_content(cell: types.CellType) -> Any:
    return next(iter(_content_of(cell)), None)


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _unknown(value: Any, place: str, why: str) -> InputError:
    return InputError(
        f"{place} is a {type(value).__qualname__}, by which a policy cannot be told from another: {why}",
        "make it in the policy, or pass what it is made of",
    )


def identity_of(policies: Iterable[tuple[str, Callable[..., Any], object]]) -> tuple[str, Identity]:
    """The digest of policies, each with its name and what else belongs to it; and what they consist of."""
    found = Identity()
    digests = [found.digest((name, policy, more), name) for name, policy, more in policies]
    return _hashed("policies", *digests).hex(), found
