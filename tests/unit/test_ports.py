"""`--port-range`: what is asked for, and how."""

import pytest

from tfdp.runtime.foundation import PORTS, TransportError, allowed_ports


def test_a_range_has_both_ends() -> None:
    assert allowed_ports({}) is None
    assert allowed_ports({PORTS: ""}) is None
    assert allowed_ports({PORTS: "29000-29002"}) == range(29000, 29003)
    assert allowed_ports({PORTS: "29000"}) == range(29000, 29001)


@pytest.mark.parametrize("text", ["80-90", "29002-29000", "29000-", "-29000", "29000:29002", "29000-99999", "any"])
def test_what_is_none_is_said(text: str) -> None:
    with pytest.raises(TransportError, match="as in 29000-29100"):
        allowed_ports({PORTS: text})
