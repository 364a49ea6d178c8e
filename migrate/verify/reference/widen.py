"""A script's text with every `float32` in it read as `float64`: same lines, same columns."""

import io
import re
import tokenize

_NARROW = re.compile(r"""(["'])float32\1\Z""")


# These read numbers out of bytes: with another dtype, other numbers.
_READING = {"decode_raw", "frombuffer", "fromfile", "fromstring", "memmap"}


class NotWidenedError(Exception):
    """The text would mean something else. The message has the line."""


def widened(source: bytes) -> bytes:
    """The text with names (`tf.float32`, `np.float32`) and whole strings (`"float32"`) changed.

    Raises:
        NotWidenedError: it reads float32 out of bytes.
    """
    encoding = tokenize.detect_encoding(io.BytesIO(source).readline)[0]
    text = source.decode(encoding)
    lines = text.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    found = [token for token in tokens if _narrow(token)]
    reading = next((token for token in tokens if token.string in _READING and token.type == tokenize.NAME), None)
    if found and reading:
        raise NotWidenedError(f"line {reading.start[0]}: {reading.string} reads numbers of a dtype out of bytes")
    for token in found:
        number, column = token.start
        line = lines[number - 1]
        end = column + len(token.string)
        lines[number - 1] = line[:column] + token.string.replace("float32", "float64") + line[end:]
    return "".join(lines).encode(encoding)


def _narrow(token: tokenize.TokenInfo) -> bool:
    if token.type == tokenize.NAME:
        return token.string == "float32"
    return token.type == tokenize.STRING and bool(_NARROW.match(token.string))
