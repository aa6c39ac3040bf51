"""The page of a kernel's stages is what the tools make now."""

from __future__ import annotations

import pytest

from ci.site.stages import PAGE, page


@pytest.mark.needs("toolchain")
def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m ci.site --generate"
