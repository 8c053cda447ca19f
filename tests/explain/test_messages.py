"""The page of messages and the texts it is made of."""

from support.helpers import ROOT

from tether import Cause, Status
from tether.explain.causes import CAUSES
from tether.explain.messages import page


def test_the_page_of_messages_is_up_to_date():
    """Run ``python -m tether.explain.messages > docs/reference/messages.md`` if not."""
    assert (ROOT / "docs/reference/messages.md").read_text(encoding="utf-8") == page()


def test_every_cause_and_status_is_explained():
    text = page()
    assert set(CAUSES) == set(Cause)
    for cause in Cause:
        assert f"`{cause.value}`" in text
    for status in Status:
        assert f"`{status.name}`" in text
