"""What the self-test finds, in words."""

from collections.abc import Mapping

SMALL, LARGE = 1, 2_500_000  # float32 numbers: 4 B and 10 MB
_MEGABYTE = 1e6


def said(found: Mapping[str, object]) -> str:
    """The line for people."""
    large = found["large_ms"]
    assert isinstance(large, float)
    right = "all-reduce right" if not found["wrong"] else f"WRONG: {found['wrong']}"
    rate = LARGE * 4 / _MEGABYTE / large
    return (
        f"{found['size']} process(es) over {found['transport']}: {right}; 4 B in {found['small_ms']:.2f} ms, 10 MB in "
        f"{large:.1f} ms ({rate:.1f} GB/s)"
    )
