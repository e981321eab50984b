"""llama.cpp's own GBNF parser and matcher as an oracle; it needs the shared object but no model."""

import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_size_t, c_uint32, c_void_p
from functools import cache
from typing import Any

from fewparse.lm.llama import library

MAX_STACKS = 100
"""The engine has a stack for every possible parse; an ambiguous grammar can double them with each character."""
VECTOR = c_void_p * 3
"""A C++ vector: pointers to its begin, its end, and the end of its capacity."""
SYMBOLS: dict[str, tuple[str, Any, list[Any]]] = {
    "init": (
        "_Z23llama_grammar_init_implPK11llama_vocabPKcS3_bPS3_mPKim",
        c_void_p,
        [c_void_p, c_char_p, c_char_p, c_bool, c_void_p, c_size_t, c_void_p, c_size_t],
    ),
    "accept": ("_Z20llama_grammar_acceptP13llama_grammarj", None, [c_void_p, c_uint32]),
    "stacks": ("_Z24llama_grammar_get_stacksP13llama_grammar", POINTER(VECTOR), [c_void_p]),
    "clone": ("_Z24llama_grammar_clone_implRK13llama_grammar", c_void_p, [c_void_p]),
    "free": ("_Z23llama_grammar_free_implP13llama_grammar", None, [c_void_p]),
}


@cache
def functions() -> dict[str, Any]:
    """The engine's functions; none if the shared object does not export them."""
    found = {}
    for name, (symbol, result, arguments) in SYMBOLS.items():
        function = getattr(library(), symbol, None)
        if function is None:
            return {}
        function.restype, function.argtypes = result, arguments
        found[name] = function
    return found


class LlamaGrammar:
    """One grammar as llama.cpp reads it."""

    def __init__(self, source: str) -> None:
        self._functions = functions()
        self._grammar = self._functions["init"](None, source.encode(), b"root", False, None, 0, None, 0)
        assert self._grammar, f"llama.cpp rejects this grammar:\n{source}"

    def accepts(self, text: str) -> bool | None:
        """Whether the text is a sentence; None if the engine would need too long."""
        state = self._functions["clone"](self._grammar)
        accepted = None
        for char in text:
            if len(self._stacks(state)) > MAX_STACKS:
                break
            self._functions["accept"](state, ord(char))
        else:
            accepted = any((stack[0] or 0) == (stack[1] or 0) for stack in self._stacks(state))
        self._functions["free"](state)
        return accepted

    def _stacks(self, state: int) -> Any:
        begin, end, _ = self._functions["stacks"](state).contents
        count = ((end or 0) - (begin or 0)) // ctypes.sizeof(VECTOR)
        return (VECTOR * count).from_address(begin) if count else ()

    def close(self) -> None:
        """Free the native memory."""
        self._functions["free"](self._grammar)
