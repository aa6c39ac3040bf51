"""Hints of loads and stores, byte for byte as cuTile's exporter writes them: `allow_tma = false` is a boolean there."""

from __future__ import annotations

import pytest

from toolchain.tileir.bytecode.attributes import AttributeWriter
from toolchain.tileir.dialect.attrs import HintsAttr

pytestmark = pytest.mark.needs("toolchain")


@pytest.mark.parametrize(
    ("allow_tma", "pairs"), [(False, (("allow_tma", False),)), (True, ())], ids=["allow_tma=false", "allow_tma=true"]
)
def test_allow_tma_is_written_as_cutile_writes_it(allow_tma: bool, pairs: tuple[tuple[str, bool], ...]):
    from cuda.tile._bytecode.attribute import LoadStoreHints, encode_dictionary_untagged, make_load_store_hints
    from cuda.tile._bytecode.basic import StringTable

    theirs, strings = bytearray(), StringTable()
    hints = make_load_store_hints({"default": LoadStoreHints(allow_tma=allow_tma)})
    encode_dictionary_untagged(hints.hints_by_arch, strings, theirs)
    writer = AttributeWriter(
        lambda _: pytest.fail("a boolean has no type"), lambda text: strings[text.encode()].string_id
    )
    assert writer.hints(HintsAttr((("default", pairs),))) == bytes(theirs)
